//! Dispatchers without a server: each attempt to connect and each batch ends as the test says. The clock is paused.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::pending,
    sync::Arc,
    time::Duration,
};

use animal_store_adapter_kit::queue::Request;
use animal_store_app::ports::StoreFailure;
use futures_util::FutureExt;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Client;

use super::*;
use crate::{
    PgEndpoint, PostgresSettings,
    connection::{ConnectionSettings, ConnectionTask},
    error::ConnectionError,
    metrics::{Count, Metrics},
};

const TIMEOUT: Duration = Duration::from_secs(1);
const A_MOMENT: Duration = Duration::from_millis(1);
/// Longer than the pause after the first failed attempt.
const AFTER_A_PAUSE: Duration = Duration::from_millis(30);

thread_local! {
    // Each test has a thread, on which all of its tasks run.
    static ATTEMPTS: RefCell<VecDeque<Attempt>> = const { RefCell::new(VecDeque::new()) };
    static ATTEMPTS_MADE: Cell<usize> = const { Cell::new(0) };
    static BATCHES: RefCell<Vec<Vec<Ask>>> = const { RefCell::new(Vec::new()) };
}

/// An attempt to connect.
#[derive(Clone, Copy)]
enum Attempt {
    Fails,
    Hangs,
    Panics,
    Succeeds,
}

/// A request, by the end of its batch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ask {
    Answer,
    Hang,
    Panic,
    /// The batch fails after a moment because of one request.
    Spoil,
    /// The first sessions refuse it, this number of them.
    Refuse(usize),
}

use Ask::{Answer, Hang, Panic, Refuse, Spoil};
use Attempt::{Fails, Hangs, Panics, Succeeds};
use Purpose::{Creates, Reads};

impl Request for Ask {
    type Response = ();
}

struct Fake;

impl Session for Fake {
    type Request = Ask;

    const MAX_ROWS: usize = 10;

    async fn open(
        _: Purpose,
        _: &ConnectionSettings,
    ) -> Result<(Self, ConnectionTask), ConnectionError> {
        ATTEMPTS_MADE.set(ATTEMPTS_MADE.get() + 1);
        match ATTEMPTS.with_borrow_mut(VecDeque::pop_front) {
            Some(Fails) => Err(ConnectionError::Closed),
            Some(Hangs) => pending().await,
            Some(Panics) => panic!("the test wants it"),
            Some(Succeeds) | None => Ok((Self, ConnectionTask::new(pending(), Arc::default()))),
        }
    }

    async fn prepare(
        _: Purpose,
        _: Client,
        _: &ConnectionTask,
        _: &PostgresSettings,
    ) -> Result<Self, ConnectionError> {
        unreachable!("there is no server")
    }

    async fn execute(&mut self, batch: &[&Ask], _: &ConnectionSettings) -> Executed<Ask> {
        BATCHES.with_borrow_mut(|batches| batches.push(batch.iter().map(|ask| **ask).collect()));
        let mut responses = Vec::new();
        for ask in batch {
            match ask {
                Refuse(sessions) if ATTEMPTS_MADE.get() <= *sessions => {
                    responses.push(Err(failure(Affected::Session)));
                }
                Answer | Refuse(_) => responses.push(Ok(())),
                Hang => pending().await,
                Panic => panic!("the test wants it"),
                Spoil => {
                    sleep(A_MOMENT).await;
                    return vec![Err(failure(Affected::Row)); batch.len()];
                }
            }
        }
        responses
    }
}

fn failure(affects: Affected) -> Failure {
    Failure::new(
        StoreFailure::Unavailable("the test wants it".into()),
        affects,
    )
}

struct World {
    sender: Sender<Ask>,
    settings: ConnectionSettings,
    registry: Registry,
    schema: watch::Sender<bool>,
    dispatchers: Vec<JoinHandle<()>>,
}

impl World {
    fn start(purpose: Purpose, connections: usize, attempts: &[Attempt]) -> Self {
        ATTEMPTS.set(attempts.iter().copied().collect());
        let (schema, schema_ready) = watch::channel(true);
        let mut registry = Registry::default();
        let endpoint = PgEndpoint::parse(&"postgres://127.0.0.1/pets".into()).unwrap();
        let postgres = PostgresSettings {
            connect_timeout: TIMEOUT,
            timeout: TIMEOUT,
            connections_per_worker: connections,
            max_waiting_reads: 10,
            max_waiting_creates: 10,
            ..PostgresSettings::default()
        };
        let metrics = Metrics::new(&mut registry);
        let settings = ConnectionSettings::new(endpoint, postgres, metrics, schema_ready);
        let (sender, dispatchers) = batching::<Fake>(purpose, &settings);
        Self {
            sender,
            settings,
            registry,
            schema,
            dispatchers,
        }
    }

    async fn send(&self, ask: Ask) -> Result<(), StoreFailure> {
        self.sender.send(ask, TIMEOUT).await
    }

    /// The value of a metric, without the prefix of its name.
    fn metric(&self, series: &str) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        let prefix = format!("storage_{series} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&prefix));
        value.unwrap().to_owned()
    }

    fn seconds(&self, name: &str) -> f64 {
        let sum = self.metric(&format!("{name}_seconds_sum{{kind=\"read\"}}"));
        sum.parse().unwrap()
    }

    fn connected(&self) -> u64 {
        self.settings.metrics.connections(Reads).connected.get()
    }
}

fn is_unavailable(result: &Result<(), StoreFailure>) -> bool {
    matches!(result, Err(StoreFailure::Unavailable(_)))
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_batch_and_the_dispatcher_goes_on_with_another_connection() {
    let reads = World::start(Reads, 1, &[]);
    for failures in ["1", "2"] {
        assert!(is_unavailable(&reads.send(Panic).await));
        assert_eq!(reads.connected(), 0);
        sleep(AFTER_A_PAUSE * 2).await;
        reads.send(Answer).await.unwrap();
        assert_eq!(reads.connected(), 1);
        let counted = reads.metric("failures_total{reason=\"unavailable\"}");
        assert_eq!(counted, failures);
    }

    let creates = World::start(Creates, 1, &[]);
    let lost = creates.send(Panic).await;
    assert!(
        matches!(lost, Err(StoreFailure::OutcomeUnknown(_))),
        "{lost:?}"
    );
    let counted = creates.metric("failures_total{reason=\"outcome_unknown\"}");
    assert_eq!(counted, "1");
    sleep(AFTER_A_PAUSE).await;
    creates.send(Answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_requests_fail_at_once_but_wait_for_the_first_attempt() {
    let world = World::start(Reads, 1, &[Fails, Hangs]);
    let mut first = Box::pin(world.send(Answer));
    assert!((&mut first).now_or_never().is_none());
    assert!(is_unavailable(&first.await), "the first attempt failed");
    // During the pause, and during the next attempt.
    for _ in 0..2 {
        assert!(is_unavailable(
            &world.send(Answer).now_or_never().expect("at once")
        ));
        sleep(AFTER_A_PAUSE).await;
    }
    assert_eq!(ATTEMPTS_MADE.get(), 2);
    let connections = world.settings.metrics.connections(Reads);
    assert_eq!(connections.unavailable.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_one_dispatcher_is_connected_requests_succeed() {
    let world = World::start(Reads, 2, &[Succeeds, Fails, Fails, Fails, Hangs]);
    for _ in 0..20 {
        world.send(Answer).await.unwrap();
        sleep(AFTER_A_PAUSE).await;
    }
    assert_eq!((world.connected(), ATTEMPTS_MADE.get()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn the_next_batch_leaves_on_another_connection_only_if_a_batch_is_slow() {
    let world = World::start(Reads, 2, &[]);
    world.send(Answer).await.unwrap();
    let slow = world.send(Hang);
    let behind = async {
        sleep(A_MOMENT).await;
        let start = Instant::now();
        world.send(Answer).await.unwrap();
        let delay = start.elapsed();
        assert!((A_MOMENT * 3..AFTER_A_PAUSE).contains(&delay), "{delay:?}");
        assert!(world.seconds("queue_wait") >= 0.003);
        for _ in 0..10 {
            world.send(Answer).await.unwrap();
        }
        assert!(
            start.elapsed() < AFTER_A_PAUSE,
            "the other connection is free"
        );
    };
    let (slow, ()) = tokio::join!(slow, behind);
    assert!(matches!(slow, Err(StoreFailure::Timeout)), "{slow:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_client_left_is_not_in_the_smaller_batches() {
    let world = World::start(Reads, 1, &[]);
    let mut asks = [Answer, Spoil, Answer].map(|ask| Box::pin(world.send(ask)));
    assert!(asks.iter_mut().all(|ask| ask.now_or_never().is_none()));
    let [left, spoiling, other] = asks;
    timeout(A_MOMENT / 2, pending::<()>()).await.unwrap_err();
    drop(left);

    let (spoiling, other) = tokio::join!(spoiling, other);
    assert!(is_unavailable(&spoiling));
    other.unwrap();
    let batches: [&[Ask]; 3] = [&[Answer, Spoil, Answer], &[Spoil], &[Answer]];
    assert_eq!(BATCHES.take(), batches);
    // Each request waited once, and each batch is counted.
    for name in ["queue_wait", "batch_duration"] {
        let count = world.metric(&format!("{name}_seconds_count{{kind=\"read\"}}"));
        assert_eq!(count, "3", "{name}");
    }
    let duration = world.seconds("batch_duration");
    assert!((0.002..0.01).contains(&duration), "{duration}");
}

#[tokio::test(start_paused = true)]
async fn nothing_connects_before_the_schema_is_ready() {
    let mut world = World::start(Reads, 1, &[]);
    world.schema.send_replace(false);
    for _ in 0..2 {
        sleep(AFTER_A_PAUSE).await;
        assert!(is_unavailable(
            &world.send(Answer).now_or_never().expect("at once")
        ));
    }
    assert_eq!(ATTEMPTS_MADE.get(), 0);
    world.schema.send_replace(true);
    sleep(AFTER_A_PAUSE).await;
    world.send(Answer).await.unwrap();
    drop(world.sender);
    world.dispatchers.remove(0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_ends_with_its_senders_even_if_it_connects() {
    for attempts in [&[Hangs][..], &[Fails, Hangs], &[Fails; 9]] {
        let mut world = World::start(Creates, 1, attempts);
        sleep(AFTER_A_PAUSE).await;
        drop(world.sender);
        world.dispatchers.remove(0).await.unwrap();
        let metrics = world.settings.metrics.connections(Creates);
        let counts = [
            &metrics.connecting,
            &metrics.connected,
            &metrics.unavailable,
        ];
        assert_eq!(counts.map(Count::get), [0; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_a_session_refuses_are_executed_again_in_a_new_one_without_a_pause() {
    for purpose in [Reads, Creates] {
        ATTEMPTS_MADE.set(0);
        let world = World::start(purpose, 1, &[]);
        let start = Instant::now();
        let asks = [Answer, Refuse(1), Answer].map(|ask| world.send(ask));
        let responses = futures_util::future::join_all(asks).await;
        assert!(responses.iter().all(Result::is_ok), "{responses:?}");
        assert_eq!(start.elapsed(), Duration::ZERO);
        let batches: [&[Ask]; 2] = [&[Answer, Refuse(1), Answer], &[Refuse(1)]];
        assert_eq!(BATCHES.take(), batches);
        let connected = world.settings.metrics.connections(purpose).connected.get();
        assert_eq!((ATTEMPTS_MADE.get(), connected), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_every_session_reports_costs_a_session_per_second_and_no_other_request() {
    let world = World::start(Reads, 1, &[]);
    let refused = Refuse(usize::MAX);
    for _ in 0..250 {
        let (refused, other) = tokio::join!(world.send(refused), world.send(Answer));
        assert!(is_unavailable(&refused));
        other.unwrap();
        world.send(Answer).await.unwrap();
        sleep(A_MOMENT * 5).await;
    }
    // The first one, and after each pause another one that reports the same.
    assert_eq!((ATTEMPTS_MADE.get(), world.connected()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_session_refused_fails_if_no_new_one_can_be_opened() {
    let world = World::start(Creates, 1, &[Succeeds, Fails]);
    let refused = world.send(Refuse(1)).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    sleep(AFTER_A_PAUSE).await;
    world.send(Answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn if_a_dispatcher_panics_the_writer_of_the_process_ends() {
    for attempts in [&[Panics][..], &[Fails, Panics], &[Succeeds, Panics]] {
        let reads = World::start(Reads, 2, attempts);
        let mut writer = watch_over(vec![tokio::spawn(pending())], &reads.settings);
        timeout(TIMEOUT, &mut writer).await.unwrap().unwrap();
    }
    let creates = World::start(Creates, 1, &[]);
    let mut writer = watch_over(creates.dispatchers, &creates.settings);
    creates.sender.send(Panic, TIMEOUT).await.unwrap_err();
    assert!((&mut writer).now_or_never().is_none(), "a batch may panic");
    drop(creates.sender);
    writer.await.unwrap();
}
