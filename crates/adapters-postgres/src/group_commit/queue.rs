use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::ports::{AddPetError, StorageError};
use tokio::sync::{Notify, oneshot};

use super::create::{Answer, Create};

/// Creates that wait for the writer, in the order in which they came. There is room for so many and no more.
pub(super) struct Queue<C> {
    waiting: Mutex<Waiting<C>>,
    changed: Notify,
    room: usize,
}

struct Waiting<C> {
    creates: VecDeque<Waiter<C>>,
    last_ticket: u64,
    closed: bool,
}

struct Waiter<C> {
    ticket: u64,
    asked: Asked<C>,
}

/// A create, and where to say what became of it.
pub(super) struct Asked<C> {
    pub(super) create: C,
    answer: oneshot::Sender<Answer>,
}

/// A place in the queue. Whoever drops it has left.
pub(super) struct Place<C> {
    queue: Arc<Queue<C>>,
    ticket: u64,
}

impl<C> Queue<C> {
    pub(super) fn new(room: usize) -> Self {
        let waiting = Waiting { creates: VecDeque::new(), last_ticket: 0, closed: false };
        Self { waiting: Mutex::new(waiting), changed: Notify::new(), room }
    }

    /// Joins at the end.
    pub(super) fn join(self: &Arc<Self>, create: C) -> Result<(Place<C>, oneshot::Receiver<Answer>), StorageError> {
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(StorageError::Unavailable("the writer has ended".into()));
        }
        if waiting.creates.len() >= self.room {
            return Err(StorageError::Overloaded);
        }
        waiting.last_ticket += 1;
        let ticket = waiting.last_ticket;
        waiting.creates.push_back(Waiter { ticket, asked: Asked { create, answer } });
        let first = waiting.creates.len() == 1;
        drop(waiting);
        if first {
            self.changed.notify_one();
        }
        Ok((Place { queue: Arc::clone(self), ticket }, receiver))
    }

    /// Takes all who wait, up to so many; waits where there is nobody. `None` once the queue is closed and empty.
    pub(super) async fn take(&self, at_most: usize) -> Option<Vec<Asked<C>>> {
        loop {
            {
                let mut waiting = self.lock();
                if !waiting.creates.is_empty() {
                    let count = waiting.creates.len().min(at_most);
                    return Some(waiting.creates.drain(..count).map(|waiter| waiter.asked).collect());
                }
                if waiting.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Nobody joins any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Nobody waits any more, either.
    pub(super) fn abandon(&self) {
        self.close();
        // Outside of the lock: whoever waited is told by the end of its channel.
        let waiting = std::mem::take(&mut self.lock().creates);
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<C>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Create> Asked<C> {
    /// The statement said this, or nothing: then a trigger of the table's kept it out.
    pub(super) fn done(self, outcome: Option<C::Outcome>) {
        let Some(outcome) = outcome else {
            let kept_out = StorageError::Unavailable("a trigger kept the row out of the table".into());
            return self.fail(kept_out.into());
        };
        let Self { create, answer } = self;
        // Whoever asked may have gone.
        let _ = answer.send(create.answer(outcome));
    }

    pub(super) fn fail(self, error: AddPetError) {
        let Self { create, answer } = self;
        // What it holds is free before anybody can ask again.
        drop(create);
        let _ = answer.send(Err(error));
    }
}

impl<C> Place<C> {
    /// Leaves, and tells whether that was possible: whoever was taken has to wait for the answer.
    pub(super) fn leave(&self) -> bool {
        let mut waiting = self.queue.lock();
        let place = waiting.creates.binary_search_by_key(&self.ticket, |waiter| waiter.ticket);
        place.ok().and_then(|index| waiting.creates.remove(index)).is_some()
    }
}

impl<C> Drop for Place<C> {
    fn drop(&mut self) {
        self.leave();
    }
}
