//! Queue, dispatchers and clients, under controlled schedules.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use animal_store_app::ports::{AddPetError, StorageError};
use animal_store_schedules::{chance, check, future, scheduling_point};
use prometheus_client::registry::Registry;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio_postgres::Client;

use super::*;
use crate::{
    PgEndpoint, PostgresSettings, SchemaMode,
    concurrency::timeout,
    connection::{Connection, Session},
    error::ConnectionError,
    metrics::Metrics,
};

const CLIENTS: u32 = 5;
const CAPACITY: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(1);

thread_local! {
    // Each test has a thread, on which all of its tasks run. So it has gauges of its own.
    static SETTINGS: ConnectionSettings = ConnectionSettings {
        endpoint: PgEndpoint::parse(&"postgres://user@127.0.0.1/pets?sslmode=disable".into()).unwrap(),
        postgres: PostgresSettings {
            schema: SchemaMode::Check,
            required_at_start: true,
            start_timeout: TIMEOUT,
            connections_per_worker: 1,
            transaction_pooling: false,
            connect_timeout: TIMEOUT,
            timeout: TIMEOUT,
            max_waiting_reads: CAPACITY,
            max_waiting_creates: CAPACITY,
            idempotency_retention: TIMEOUT,
        },
        outages: Arc::default(),
        metrics: Arc::new(Metrics::new(&mut Registry::default())),
        schema_ready: watch::channel(true).1,
    };
}

/// What the database has, and what clients know.
#[derive(Default)]
struct World {
    applied: Ids,
    /// Requests that are not in the database, as their clients know.
    refused: Ids,
    /// Requests whose clients have disconnected.
    abandoned: Ids,
    /// Idempotency keys of requests that exist.
    held: Ids,
    /// Whether a connection was lost, or a dispatcher was aborted.
    disturbed: AtomicBool,
    /// Number of batches that stall until all other requests have ended. No connection is lost then: a batch without
    /// one waits for a stalled batch.
    stalls: Option<AtomicUsize>,
    /// Requests that have ended, or are in a stalled batch.
    ended: watch::Sender<HashSet<u32>>,
}

#[derive(Default)]
struct Ids(std::sync::Mutex<HashSet<u32>>);

impl Ids {
    fn insert(&self, id: u32) -> bool {
        self.0.lock().unwrap().insert(id)
    }

    fn contains(&self, id: u32) -> bool {
        self.0.lock().unwrap().contains(&id)
    }
}

/// A create, or a read if the outcome of a request in flight does not matter.
struct Create<const OUTCOME_MATTERS: bool> {
    id: u32,
    rows: usize,
    /// Whether the database refuses the statement because of this request.
    faulty: bool,
    world: Arc<World>,
}

impl<const OUTCOME_MATTERS: bool> Drop for Create<OUTCOME_MATTERS> {
    fn drop(&mut self) {
        scheduling_point();
        self.world.held.0.lock().unwrap().remove(&self.id);
    }
}

/// A session that executes one batch at a time.
struct Model {
    world: Arc<World>,
    turn: Mutex<()>,
    /// Requests without clients when the current turn began.
    abandoned: Ids,
    executing: AtomicUsize,
}

impl Session for Model {
    async fn prepare(_: Client, _: &PostgresSettings) -> Result<Self, ConnectionError> {
        unreachable!("the model opens no connection")
    }

    async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        scheduling_point();
        let turn = self.turn.lock().await;
        self.abandoned.0.lock().unwrap().clone_from(&self.world.abandoned.0.lock().unwrap());
        Some(turn)
    }
}

/// A batch that a session executes, until this is dropped.
struct Executing<'a>(&'a AtomicUsize);

impl Drop for Executing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<const OUTCOME_MATTERS: bool> Request for Create<OUTCOME_MATTERS> {
    type Session = Model;
    type Outcome = ();
    type Response = u32;
    type Error = AddPetError;

    const MAX_ROWS: usize = 2;
    const OUTCOME_MATTERS: bool = OUTCOME_MATTERS;

    fn rows(&self) -> usize {
        self.rows
    }

    async fn execute(
        requests: &[&Self],
        connection: &Connection<Model>,
        _: &ConnectionSettings,
    ) -> Result<Vec<()>, Failure> {
        let Model { world, abandoned, executing, .. } = &connection.session;
        for request in requests {
            assert!(!abandoned.contains(request.id), "a request without a client was executed");
        }
        let rows: usize = requests.iter().map(|request| request.rows).sum();
        assert!(rows <= Self::MAX_ROWS || requests.len() == 1, "a batch is too large");
        assert_eq!(executing.fetch_add(1, Ordering::Relaxed), 0, "a session executes two batches");
        let _executing = Executing(executing);
        future::yield_now().await;
        let stall = |stalls: &AtomicUsize| {
            stalls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |stalls| stalls.checked_sub(1)).is_ok()
        };
        if world.stalls.as_ref().is_some_and(stall) {
            world.ended.send_modify(|ended| ended.extend(requests.iter().map(|request| request.id)));
            let all = |ended: &HashSet<u32>| ended.len() == CLIENTS as usize;
            world.ended.subscribe().wait_for(all).await.expect("the world has the sender");
        }
        if requests.iter().any(|request| request.faulty) {
            let split = Some(Split { parts: 2, last: chance(2) });
            return Err(Failure { error: BatchError::Unavailable("refused".to_owned()), split });
        }
        let is_lost = world.stalls.is_none() && chance(8);
        if is_lost {
            world.disturbed.store(true, Ordering::Relaxed);
            connection.mark_broken("the connection was lost");
            if chance(2) {
                return Err(BatchError::Unavailable("not sent".to_owned()).into());
            }
        }
        if !is_lost || chance(2) {
            for request in requests {
                assert!(!world.refused.contains(request.id), "a create was refused and applied");
                assert!(world.applied.insert(request.id), "a create was applied twice");
            }
        }
        future::yield_now().await;
        if is_lost { Err(BatchError::OutcomeUnknown("lost".to_owned()).into()) } else { Ok(vec![(); requests.len()]) }
    }

    fn result(self, (): ()) -> Result<u32, AddPetError> {
        Ok(self.id)
    }
}

/// Sends a request. Some clients disconnect before the response.
async fn send<const OUTCOME_MATTERS: bool>(world: Arc<World>, batcher: Arc<Batcher<Create<OUTCOME_MATTERS>>>, id: u32) {
    let (rows, faulty) = (if chance(4) { 3 } else { 1 }, chance(6));
    world.held.insert(id);
    let request = Create { id, rows, faulty, world: Arc::clone(&world) };
    let result = if chance(4) {
        let Ok(result) = timeout(TIMEOUT * 3, batcher.send(request)).await else {
            world.abandoned.insert(id);
            return;
        };
        result
    } else {
        batcher.send(request).await
    };
    assert!(batcher.queue.len() <= CAPACITY, "the queue has more requests than its capacity");
    let disturbed = world.disturbed.load(Ordering::Relaxed);
    if OUTCOME_MATTERS {
        assert!(!world.held.contains(id), "the key of a request is held after its response");
    }
    match result {
        Some(Ok(response)) => {
            assert_eq!(response, id);
            assert!(world.applied.contains(id), "a create was confirmed and not applied");
        }
        Some(Err(AddPetError::NotStored(error))) => {
            let is_expected = match error {
                StorageError::Unavailable(_) => faulty || disturbed,
                StorageError::Timeout | StorageError::Overloaded => true,
                StorageError::Corrupt(_) => false,
            };
            assert!(is_expected, "a request failed without a reason");
            if OUTCOME_MATTERS {
                assert!(!world.applied.contains(id), "a create was applied and refused");
                world.refused.insert(id);
            }
        }
        Some(Err(AddPetError::OutcomeUnknown(_))) | None => {
            assert!(disturbed, "an outcome is unknown without a reason")
        }
        Some(Err(_)) => panic!("the model has no such error"),
    }
}

fn schedule<const OUTCOME_MATTERS: bool>(dispatchers: usize, stalls: Option<usize>, abort: bool) {
    let settings = SETTINGS.with(Clone::clone);
    let world = Arc::new(World { stalls: stalls.map(AtomicUsize::new), ..World::default() });
    // Dispatchers share sessions, unless a session stalls.
    let sessions = if stalls.is_some() { dispatchers } else { dispatchers.div_ceil(2) };
    let sessions = (0..sessions).map(|_| Model {
        world: Arc::clone(&world),
        turn: Mutex::new(()),
        abandoned: Ids::default(),
        executing: AtomicUsize::new(0),
    });
    let supervisors = Arc::new(Supervisors::connected(sessions));
    let metrics = settings.metrics.creates.clone();
    let queue = Arc::new(Queue::<Create<OUTCOME_MATTERS>>::new(CAPACITY, metrics.clone()));
    let batcher = Arc::new(Batcher { queue, settings: settings.clone() });
    let dispatchers: Vec<_> = (0..dispatchers)
        .map(|number| {
            let (queue, supervisors) = (Arc::clone(&batcher.queue), Arc::clone(&supervisors));
            let settings = settings.clone();
            future::spawn(Dispatcher { queue, is_first: number == 0, supervisors, settings }.run())
        })
        .collect();
    let clients = (0..CLIENTS).map(|id| {
        let (world, batcher) = (Arc::clone(&world), Arc::clone(&batcher));
        future::spawn(async move {
            send(Arc::clone(&world), batcher, id).await;
            world.ended.send_modify(|ended| _ = ended.insert(id));
        })
    });
    let clients: Vec<_> = clients.collect();
    future::block_on(async {
        if abort {
            world.disturbed.store(true, Ordering::Relaxed);
            dispatchers[dispatchers.len() - 1].abort();
        }
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(metrics.queued.get(), 0, "the queue is empty without clients");
        drop(batcher);
        for dispatcher in dispatchers {
            let _ = dispatcher.await;
        }
    });
    assert!(world.held.0.lock().unwrap().is_empty(), "each key is free at the end");
    assert_eq!((metrics.queued.get(), metrics.queue_limit.get()), (0, 0));
}

#[test]
fn each_create_is_applied_once_or_refused_by_one_dispatcher() {
    check("PostgreSQL: creates, one dispatcher", || schedule::<true>(1, None, false));
}

#[test]
fn each_create_is_applied_once_or_refused_by_several_dispatchers() {
    check("PostgreSQL: creates, three dispatchers", || schedule::<true>(3, None, false));
}

#[test]
fn a_stalled_batch_does_not_delay_the_others() {
    check("PostgreSQL: creates, stalled batches", || schedule::<true>(3, Some(2), false));
}

#[test]
fn each_read_gets_a_response_from_several_dispatchers() {
    check("PostgreSQL: reads, two dispatchers", || schedule::<false>(2, None, false));
}

#[test]
fn the_end_of_a_dispatcher_ends_the_others_and_all_requests() {
    check("PostgreSQL: creates, a dispatcher that ends", || schedule::<true>(2, None, true));
}
