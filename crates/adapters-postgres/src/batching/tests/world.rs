use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::pending,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use animal_store_adapter_kit::queue::{Request, Sender};
use animal_store_app::ports::StoreFailure;
use animal_store_test_servers::sample;
use futures_util::FutureExt;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::sleep,
};

use super::super::{Affected, Connected, Executed, Failure, Session, batching};
use crate::{
    PgEndpoint, PostgresSettings,
    connection::{ConnectionSettings, ConnectionTask},
    error::ConnectionError,
    metrics::Metrics,
    purpose::Purpose,
};

pub(super) const TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const A_MOMENT: Duration = Duration::from_millis(1);
/// Longer than the pause after the first failed attempt.
pub(super) const AFTER_A_PAUSE: Duration = Duration::from_millis(30);

thread_local! {
    // Each test has a thread, on which all of its tasks run.
    pub(super) static ATTEMPTS: RefCell<VecDeque<Attempt>> = const { RefCell::new(VecDeque::new()) };
    pub(super) static ATTEMPTS_MADE: Cell<usize> = const { Cell::new(0) };
    pub(super) static BATCHES: RefCell<Vec<Vec<Ask>>> = const { RefCell::new(Vec::new()) };
}

/// An attempt to connect.
#[derive(Clone, Copy)]
pub(super) enum Attempt {
    Fails,
    Hangs,
    Panics,
    Succeeds,
    /// It succeeds, and the connection ends when it is told.
    Ends(&'static Notify),
}

/// A request, by the end of its batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ask {
    Answer,
    Hang,
    Panic,
    /// The batch fails after a moment because of one request.
    Spoil,
    /// The first sessions refuse it, this number of them.
    Refuse(usize),
}

pub(super) use Ask::{Answer, Hang, Panic, Refuse, Spoil};
pub(super) use Attempt::{Ends, Fails, Hangs, Panics, Succeeds};
pub(super) use Purpose::{Creates, Reads};

impl Request for Ask {
    type Response = ();
}

pub(super) struct Fake;

impl Session for Fake {
    type Request = Ask;

    const MAX_ROWS: usize = 10;

    async fn open(_: Purpose, _: &ConnectionSettings) -> Result<Connected<Self>, ConnectionError> {
        ATTEMPTS_MADE.set(ATTEMPTS_MADE.get() + 1);
        match ATTEMPTS.with_borrow_mut(VecDeque::pop_front) {
            Some(Fails) => Err(ConnectionError::Closed),
            Some(Hangs) => pending().await,
            Some(Panics) => panic!("the test wants it"),
            Some(Ends(end)) => Ok(Connected {
                session: Self,
                task: ConnectionTask::new(end.notified().map(Ok), Arc::default()),
            }),
            Some(Succeeds) | None => Ok(Connected {
                session: Self,
                task: ConnectionTask::new(pending(), Arc::default()),
            }),
        }
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

pub(super) struct World {
    pub(super) sender: Sender<Ask>,
    pub(super) settings: ConnectionSettings,
    registry: Registry,
    pub(super) schema: watch::Sender<bool>,
    pub(super) dispatchers: Vec<JoinHandle<()>>,
}

impl World {
    pub(super) fn start(purpose: Purpose, connections: usize, attempts: &[Attempt]) -> Self {
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

    pub(super) async fn send(&self, ask: Ask) -> Result<(), StoreFailure> {
        self.sender.send(ask, TIMEOUT).await
    }

    /// The value of a metric, without the prefix of its name.
    pub(super) fn metric<T: FromStr>(&self, series: &str) -> T {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        sample(&text, &format!("storage_{series}"))
    }

    pub(super) fn seconds(&self, name: &str) -> f64 {
        self.metric(&format!("{name}_seconds_sum{{kind=\"read\"}}"))
    }

    /// Sends a request that fails at once.
    pub(super) fn fails_at_once(&self) {
        let failed = self.send(Answer).now_or_never().expect("at once");
        assert!(is_unavailable(&failed));
    }

    pub(super) fn connected(&self) -> u64 {
        self.settings.metrics.connections(Reads).connected.get()
    }
}

pub(super) fn is_unavailable(result: &Result<(), StoreFailure>) -> bool {
    matches!(result, Err(StoreFailure::Unavailable(_)))
}
