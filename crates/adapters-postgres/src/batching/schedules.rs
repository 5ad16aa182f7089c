//! Queue, dispatchers and clients, under controlled schedules.

mod model;

use std::{sync::atomic::Ordering, time::Duration};

use animal_store_app::ports::{AddPetError, StoreFailure};
use animal_store_schedules::{chance, check, future};
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use self::model::{Create, Model, World};
use super::*;
use crate::{PgEndpoint, PostgresSettings, SchemaMode, concurrency::timeout, metrics::Metrics};

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
        Some(Err(AddPetError::Store(error))) => {
            let is_expected = match error {
                StoreFailure::Unavailable(_) => faulty || disturbed,
                StoreFailure::Timeout | StoreFailure::Overloaded => true,
                StoreFailure::Corrupt(_) => false,
            };
            assert!(is_expected, "a request failed without a reason");
            if OUTCOME_MATTERS {
                assert!(!world.applied.contains(id), "a create was applied and refused");
                world.refused.insert(id);
            }
        }
        Some(Err(AddPetError::Store(StoreFailure::OutcomeUnknown(_)))) | None => {
            assert!(disturbed, "an outcome is unknown without a reason")
        }
        Some(Err(_)) => panic!("the model has no such error"),
    }
}

fn schedule<const OUTCOME_MATTERS: bool>(dispatchers: usize, stalls: Option<usize>, abort: bool) {
    let settings = SETTINGS.with(Clone::clone);
    let world = Arc::new(World::new(stalls));
    // Dispatchers share sessions, unless a session stalls.
    let sessions = if stalls.is_some() { dispatchers } else { dispatchers.div_ceil(2) };
    let supervisors = Arc::new(Supervisors::connected((0..sessions).map(|_| Model::new(&world))));
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
    assert!(world.held.is_empty(), "each key is free at the end");
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
