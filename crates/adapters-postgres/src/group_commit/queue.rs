use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::ports::{AddError, StorageError};
use animal_store_domain::{NewPet, Pet, PetId};
use tokio::sync::{Notify, oneshot};

pub(super) type Answer = Result<Pet, AddError>;

/// Creates that wait for the writer, in the order in which they came. There is room for so many and no more.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
    room: usize,
}

#[derive(Default)]
struct Waiting {
    creates: VecDeque<Waiter>,
    last_ticket: u64,
    closed: bool,
}

struct Waiter {
    ticket: u64,
    create: Create,
}

/// An animal to be added, and where to say what became of it.
pub(super) struct Create {
    pub(super) pet: NewPet,
    answer: oneshot::Sender<Answer>,
}

/// A place in the queue. Whoever drops it has left.
pub(super) struct Place {
    queue: Arc<Queue>,
    ticket: u64,
}

impl Queue {
    pub(super) fn new(room: usize) -> Self {
        Self { waiting: Mutex::default(), changed: Notify::new(), room }
    }

    /// Joins at the end.
    pub(super) fn join(self: &Arc<Self>, pet: NewPet) -> Result<(Place, oneshot::Receiver<Answer>), StorageError> {
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
        waiting.creates.push_back(Waiter { ticket, create: Create { pet, answer } });
        let first = waiting.creates.len() == 1;
        drop(waiting);
        if first {
            self.changed.notify_one();
        }
        Ok((Place { queue: Arc::clone(self), ticket }, receiver))
    }

    /// Takes all who wait, up to so many; waits where there is nobody. `None` once the queue is closed and empty.
    pub(super) async fn take(&self, at_most: usize) -> Option<Vec<Create>> {
        loop {
            {
                let mut waiting = self.lock();
                if !waiting.creates.is_empty() {
                    let count = waiting.creates.len().min(at_most);
                    return Some(waiting.creates.drain(..count).map(|waiter| waiter.create).collect());
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

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Create {
    /// It has this id; or none, because a trigger of the table's kept it out.
    pub(super) fn done(self, id: Option<PetId>) {
        let kept_out = || StorageError::Unavailable("a trigger kept the row out of the table".into()).into();
        let answer = id.map(|id| Pet::new(id, self.pet)).ok_or_else(kept_out);
        // Whoever asked may have gone.
        let _ = self.answer.send(answer);
    }

    pub(super) fn fail(self, error: AddError) {
        let _ = self.answer.send(Err(error));
    }
}

impl Place {
    /// Leaves, and tells whether that was possible: whoever was taken has to wait for the answer.
    pub(super) fn leave(&self) -> bool {
        let mut waiting = self.queue.lock();
        let place = waiting.creates.binary_search_by_key(&self.ticket, |waiter| waiter.ticket);
        place.ok().and_then(|index| waiting.creates.remove(index)).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}
