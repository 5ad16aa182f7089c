//! Clients and takers of one queue, under controlled schedules.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use animal_store_schedules::{chance, check, future, scheduling_point};
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::*;

const CLIENTS: u32 = 5;
const CAPACITY: usize = 3;
const MAX_ROWS: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(1);

/// What takers have done, and what clients know.
#[derive(Default)]
struct World {
    executed: Ids,
    /// Requests that were not sent, as their clients know.
    refused: Ids,
    /// Requests whose clients have disconnected.
    abandoned: Ids,
    /// Requests that exist.
    held: Ids,
    /// Whether a taker has dropped requests or itself.
    disturbed: AtomicBool,
    /// Whether the next batch stalls until all other requests have ended.
    stalls: AtomicBool,
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

struct Create {
    id: u32,
    rows: usize,
    world: Arc<World>,
}

impl Request for Create {
    type Response = u32;

    fn rows(&self) -> usize {
        self.rows
    }
}

impl Drop for Create {
    fn drop(&mut self) {
        scheduling_point();
        self.world.held.0.lock().unwrap().remove(&self.id);
    }
}

/// What a taker does besides responding.
#[derive(Clone, Copy, PartialEq)]
enum Faults {
    None,
    Stall,
    DropOrEnd,
}

/// Sends a request. Some clients disconnect before the response.
async fn client(world: &Arc<World>, sender: &Sender<Create>, id: u32) {
    let changes = sender.queue.outcome_timeout.is_some();
    world.held.insert(id);
    let request = Create {
        id,
        rows: if chance(4) { 3 } else { 1 },
        world: Arc::clone(world),
    };
    let response = sender.send(request, TIMEOUT);
    let result = if chance(4) {
        let Ok(result) = timeout_at(Instant::now() + TIMEOUT * 2, response).await else {
            world.abandoned.insert(id);
            return;
        };
        result
    } else {
        response.await
    };
    let disturbed = world.disturbed.load(Relaxed);
    let is_over = match result {
        Ok(response) => {
            assert!(
                response == id && world.executed.contains(id),
                "the response to another request"
            );
            true
        }
        Err(StoreFailure::Timeout) if !changes => false,
        Err(StoreFailure::OutcomeUnknown(cause) | StoreFailure::Unavailable(cause))
            if cause.to_string() == LOST =>
        {
            assert!(disturbed, "a request is lost without a reason");
            true
        }
        Err(StoreFailure::OutcomeUnknown(_)) => {
            assert!(changes, "a read has an outcome");
            false
        }
        Err(error) => {
            let closed = matches!(error, StoreFailure::Unavailable(_));
            assert!(!closed || disturbed, "the queue is closed without a reason");
            assert!(
                !world.executed.contains(id),
                "a request was executed and refused"
            );
            world.refused.insert(id);
            true
        }
    };
    assert!(
        !is_over || !world.held.contains(id),
        "a request exists after its response"
    );
}

/// Takes requests until the queue ends. A taker that ends before may have a successor.
async fn serve(
    world: Arc<World>,
    takers: Arc<Takers<Create>>,
    mut taker: Taker<Create>,
    faults: Faults,
) {
    while !take(&world, taker, faults).await && chance(2) {
        taker = takers.taker();
    }
}

/// Returns whether the queue has ended.
async fn take(world: &World, taker: Taker<Create>, faults: Faults) -> bool {
    while taker.ready().await {
        let disturbs = faults == Faults::DropOrEnd && chance(4);
        if disturbs {
            world.disturbed.store(true, Relaxed);
        }
        if disturbs && chance(2) {
            return false;
        }
        let abandoned = world.abandoned.0.lock().unwrap().clone();
        let mut batch = taker.take(MAX_ROWS);
        let rows: usize = batch.iter().map(|pending| pending.request.rows).sum();
        assert!(rows <= MAX_ROWS || batch.len() == 1, "a batch is too large");
        let size = batch.len();
        for pending in &mut batch {
            assert!(
                !abandoned.contains(&pending.request.id),
                "a request without a client was taken"
            );
            pending.sent(size, taker.metrics());
        }
        future::yield_now().await;
        if disturbs {
            continue;
        }
        if size > 0 && world.stalls.swap(false, Relaxed) {
            world
                .ended
                .send_modify(|ended| ended.extend(batch.iter().map(|pending| pending.request.id)));
            let all = |ended: &HashSet<u32>| ended.len() == CLIENTS as usize;
            world
                .ended
                .subscribe()
                .wait_for(all)
                .await
                .expect("the world has the sender");
        }
        for pending in batch {
            let id = pending.request.id;
            assert!(
                !world.refused.contains(id),
                "a request was refused and executed"
            );
            assert!(world.executed.insert(id), "a request was executed twice");
            scheduling_point();
            pending.respond(taker.metrics(), |create| Ok(create.id));
        }
    }
    true
}

fn schedule(tasks: usize, faults: Faults) {
    let world = Arc::new(World {
        stalls: AtomicBool::new(faults == Faults::Stall),
        ..World::default()
    });
    let [metrics] = QueueMetrics::register(&mut Registry::default(), ["create"]);
    let (sender, takers) = queue(CAPACITY, chance(2).then_some(TIMEOUT), metrics);
    let sender = Arc::new(sender);
    let takers = Arc::new(takers);
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            future::spawn(serve(
                Arc::clone(&world),
                Arc::clone(&takers),
                takers.taker(),
                faults,
            ))
        })
        .collect();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|id| {
            let world = Arc::clone(&world);
            let sender = Arc::clone(&sender);
            future::spawn(async move {
                client(&world, &sender, id).await;
                assert!(
                    sender.queue.lock().requests.len() <= CAPACITY,
                    "the queue has more requests than its capacity"
                );
                world.ended.send_modify(|ended| _ = ended.insert(id));
            })
        })
        .collect();
    future::block_on(async {
        for client in clients {
            client.await.unwrap();
        }
        assert!(
            sender.queue.lock().requests.is_empty(),
            "the queue is empty without clients"
        );
        drop(sender);
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert!(
        world.held.0.lock().unwrap().is_empty(),
        "no request exists at the end"
    );
}

#[test]
fn each_request_is_executed_once_or_refused() {
    check("queue: one taker", || schedule(1, Faults::None));
    check("queue: three takers", || schedule(3, Faults::None));
}

#[test]
fn a_stalled_batch_does_not_delay_the_others() {
    check("queue: a stalled batch", || schedule(3, Faults::Stall));
}

#[test]
fn requests_that_takers_drop_and_those_after_the_end_of_all_takers_fail() {
    check("queue: takers that drop requests or end", || {
        schedule(2, Faults::DropOrEnd)
    });
}
