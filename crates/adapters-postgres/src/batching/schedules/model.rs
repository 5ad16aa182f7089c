//! A database that applies creates, loses connections, refuses batches and stalls.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use animal_store_app::ports::AddPetError;
use animal_store_schedules::{chance, future, scheduling_point};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio_postgres::Client;

use super::CLIENTS;
use crate::{
    PostgresSettings,
    batching::{BatchError, Failure, Request, Split},
    connection::{Connection, ConnectionSettings, Session},
    error::ConnectionError,
};

/// What the database has, and what clients know.
#[derive(Default)]
pub(super) struct World {
    pub(super) applied: Ids,
    /// Requests that are not in the database, as their clients know.
    pub(super) refused: Ids,
    /// Requests whose clients have disconnected.
    pub(super) abandoned: Ids,
    /// Idempotency keys of requests that exist.
    pub(super) held: Ids,
    /// Whether a connection was lost, or a dispatcher was aborted.
    pub(super) disturbed: AtomicBool,
    /// Number of batches that stall until all other requests have ended. No connection is lost then: a batch without
    /// one waits for a stalled batch.
    stalls: Option<AtomicUsize>,
    /// Requests that have ended, or are in a stalled batch.
    pub(super) ended: watch::Sender<HashSet<u32>>,
}

impl World {
    pub(super) fn new(stalls: Option<usize>) -> Self {
        Self { stalls: stalls.map(AtomicUsize::new), ..Self::default() }
    }
}

#[derive(Default)]
pub(super) struct Ids(std::sync::Mutex<HashSet<u32>>);

impl Ids {
    pub(super) fn insert(&self, id: u32) -> bool {
        self.0.lock().unwrap().insert(id)
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.0.lock().unwrap().contains(&id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

/// A create, or a read if the outcome of a request in flight does not matter.
pub(super) struct Create<const OUTCOME_MATTERS: bool> {
    pub(super) id: u32,
    pub(super) rows: usize,
    /// Whether the database refuses the statement because of this request.
    pub(super) faulty: bool,
    pub(super) world: Arc<World>,
}

impl<const OUTCOME_MATTERS: bool> Drop for Create<OUTCOME_MATTERS> {
    fn drop(&mut self) {
        scheduling_point();
        self.world.held.0.lock().unwrap().remove(&self.id);
    }
}

/// A session that executes one batch at a time.
pub(super) struct Model {
    world: Arc<World>,
    turn: Mutex<()>,
    /// Requests without clients when the current turn began.
    abandoned: Ids,
    executing: AtomicUsize,
}

impl Model {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self {
            world: Arc::clone(world),
            turn: Mutex::default(),
            abandoned: Ids::default(),
            executing: AtomicUsize::default(),
        }
    }
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
