//! The queue between clients and threads, under controlled schedules.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use animal_store_schedules::{chance, check, future::block_on, scheduling_point, thread};
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;

use super::*;
use crate::metrics::Metrics;

const CLIENTS: u32 = 4;
const CAPACITY: usize = 2;
const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    // Each test has a thread, on which all of its tasks run. So it has gauges of its own.
    static METRICS: Metrics = Metrics::new(&mut Registry::default());
}

struct Create {
    id: u32,
    response: oneshot::Sender<()>,
}

/// What clients and threads observe.
struct World {
    queue: Queue<Create>,
    executed: std::sync::Mutex<HashSet<u32>>,
    withdrawn: std::sync::Mutex<HashSet<u32>>,
}

impl World {
    fn new() -> Arc<Self> {
        let queue = Queue::new(CAPACITY, METRICS.with(|metrics| metrics.creates.clone()));
        Arc::new(Self { queue, executed: Default::default(), withdrawn: Default::default() })
    }

    fn execute(&self, creates: Vec<Create>) {
        for Create { id, response } in creates {
            assert!(!self.withdrawn.lock().unwrap().contains(&id), "a create was executed after it was withdrawn");
            scheduling_point();
            assert!(self.executed.lock().unwrap().insert(id), "a create was executed twice");
            let _ = response.send(());
        }
    }

    /// Sends creates. Some of them are withdrawn after a while, or because the client disconnects.
    fn client(&self, id: u32) {
        let (sender, response) = oneshot::channel();
        let ticket = match self.queue.add(Create { id, response: sender }) {
            Ok(ticket) => ticket,
            Err(error) => {
                assert!(matches!(error, StoreFailure::Overloaded | StoreFailure::Unavailable(_)));
                return;
            }
        };
        assert!(self.queue.lock().requests.len() <= CAPACITY);
        if chance(4) {
            if chance(2) {
                drop(ticket);
                let state = self.queue.lock();
                assert!(state.requests.iter().all(|(_, create)| create.id != id), "a request stays without a client");
                return;
            } else if !ticket.withdraw() {
                block_on(response).expect("a create in flight gets a response");
                return ticket.responded();
            } else {
                assert!(!self.executed.lock().unwrap().contains(&id), "a create was withdrawn and executed");
            }
            self.withdrawn.lock().unwrap().insert(id);
        } else {
            block_on(response).expect("each create gets a response");
            ticket.responded();
        }
    }

    /// Runs clients until each has its response, and closes the queue.
    fn run(self: Arc<Self>, threads: Vec<thread::JoinHandle<()>>) {
        let clients = (0..CLIENTS).map(|id| {
            let world = Arc::clone(&self);
            thread::spawn(move || world.client(id))
        });
        clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().unwrap());
        self.queue.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let state = self.queue.lock();
        assert_eq!((state.requests.len(), state.idle, self.queue.metrics.waiting.get()), (0, 0, 0));
    }
}

#[test]
fn threads_that_take_shares_lose_no_request() {
    check("SQLite: the queue of the readers", || {
        const THREADS: usize = 3;
        let world = World::new();
        let threads = (0..THREADS).map(|_| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                while let Some(creates) = world.queue.take_share(THREADS, 2) {
                    assert!((1..=2).contains(&creates.len()), "a share is not empty, and not above its maximum");
                    world.execute(creates);
                }
            })
        });
        let threads = threads.collect();
        world.run(threads);
    });
}

#[test]
fn threads_that_wait_with_a_deadline_lose_no_request() {
    check("SQLite: the queue of the writer", || {
        let world = World::new();
        let deadlines = Arc::new(AtomicUsize::new(0));
        let threads = (0..if chance(2) { 1 } else { 2 }).map(|_| {
            let (world, deadlines) = (Arc::clone(&world), Arc::clone(&deadlines));
            thread::spawn(move || {
                let mut deadline = Instant::now() + SECOND;
                loop {
                    match world.queue.wait(deadline) {
                        Wakeup::Request => world.execute(world.queue.take(2)),
                        Wakeup::Deadline => {
                            assert!(Instant::now() >= deadline, "a deadline has passed when it is reported");
                            deadline = Instant::now() + SECOND;
                            // Enough to pass some deadlines in each schedule; then the requests alone wake the thread.
                            if deadlines.fetch_add(1, Ordering::Relaxed) >= 4 {
                                deadline = deadline + SECOND * 1000;
                            }
                        }
                        Wakeup::Closed => break,
                    }
                }
            })
        });
        let threads = threads.collect();
        world.run(threads);
    });
}

#[test]
fn creates_that_wait_at_the_close_are_executed() {
    check("SQLite: the close of a queue", || {
        let world = World::new();
        let thread = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                while let Some(creates) = world.queue.take_share(1, 1) {
                    world.execute(creates);
                }
            })
        };
        let closing = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.queue.close())
        };
        world.run(vec![thread, closing]);
    });
}
