use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use animal_store_app::{ApiKey, ApiKeyDigest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::look_up::{Answer, Outcome};

/// What Redis said of tokens, and who is asking it.
///
/// Tokens that exist and tokens that do not have a bound each, so that nobody can drive out the former by inventing
/// the latter. Of each token there is one look-up at a time.
pub(crate) struct Cache {
    known: quick_cache::sync::Cache<ApiKeyDigest, (Arc<ApiKey>, Option<Instant>)>,
    unknown: quick_cache::sync::Cache<ApiKeyDigest, ()>,
    /// The look-ups whose answers may be kept. A change takes them from here, and with it that permission.
    look_ups: Mutex<HashMap<ApiKeyDigest, LookUp>>,
    /// The number of the next one, which tells it from an earlier one of the same token.
    next: AtomicU64,
    room: Arc<Semaphore>,
}

struct LookUp {
    number: u64,
    outcome: watch::Receiver<Option<Outcome>>,
}

/// What is to be done for a token that is not in the cache.
pub(crate) enum LookingUp {
    /// Somebody is asking already: wait for what comes of it.
    Joined(watch::Receiver<Option<Outcome>>),
    /// Ask, and [announce](Announced::finish) what comes of it.
    Begun(Announced, watch::Receiver<Option<Outcome>>),
    /// Too many are asking.
    Overloaded,
}

/// A look-up that the cache knows of.
pub(crate) struct Announced {
    cache: Arc<Cache>,
    pub(crate) digest: ApiKeyDigest,
    number: u64,
    outcome: watch::Sender<Option<Outcome>>,
    _room: OwnedSemaphorePermit,
}

impl Cache {
    pub(crate) fn new(max_known: usize, max_unknown: usize, max_look_ups: usize) -> Self {
        Self {
            known: quick_cache::sync::Cache::new(max_known),
            unknown: quick_cache::sync::Cache::new(max_unknown),
            look_ups: Mutex::default(),
            next: AtomicU64::new(0),
            room: Arc::new(Semaphore::new(max_look_ups)),
        }
    }

    /// What Redis said of a token; `None` where it has to be asked.
    pub(crate) fn get(&self, digest: &ApiKeyDigest, now: Instant) -> Option<Answer> {
        match self.known.get(digest) {
            Some((_, Some(expires))) if expires <= now => None,
            Some((key, expires)) => Some(Answer::Known { key, expires }),
            None => self.unknown.get(digest).map(|()| Answer::Unknown),
        }
    }

    /// Announces a look-up, or joins one.
    pub(crate) fn look_up(self: &Arc<Self>, digest: ApiKeyDigest) -> LookingUp {
        let mut look_ups = self.look_ups();
        if let Some(look_up) = look_ups.get(&digest) {
            return LookingUp::Joined(look_up.outcome.clone());
        }
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return LookingUp::Overloaded };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = watch::channel(None);
        look_ups.insert(digest, LookUp { number, outcome: receiver.clone() });
        let announced = Announced { cache: Arc::clone(self), digest, number, outcome: sender, _room: room };
        LookingUp::Begun(announced, receiver)
    }

    /// Something about this token was changed.
    pub(crate) fn forget(&self, digest: &ApiKeyDigest) {
        let mut look_ups = self.look_ups();
        look_ups.remove(digest);
        self.known.remove(digest);
        self.unknown.remove(digest);
    }

    /// Anything may have been changed.
    pub(crate) fn clear(&self) {
        let mut look_ups = self.look_ups();
        look_ups.clear();
        self.known.clear();
        self.unknown.clear();
    }

    fn look_ups(&self) -> MutexGuard<'_, HashMap<ApiKeyDigest, LookUp>> {
        // Nothing that is done under the lock leaves a half-made change behind.
        self.look_ups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Announced {
    /// Keeps the answer, unless something was changed since the look-up was announced, and tells everybody who waits.
    pub(crate) fn finish(self, outcome: Outcome) {
        {
            let mut look_ups = self.cache.look_ups();
            if self.take_back(&mut look_ups)
                && let Ok(answer) = &outcome
            {
                self.keep(answer);
            }
        }
        self.outcome.send_replace(Some(outcome));
    }

    /// In place of what was known before.
    fn keep(&self, answer: &Answer) {
        let Cache { known, unknown, .. } = &*self.cache;
        match answer.clone() {
            Answer::Known { key, expires } => {
                unknown.remove(&self.digest);
                known.insert(self.digest, (key, expires));
            }
            Answer::Unknown => {
                known.remove(&self.digest);
                unknown.insert(self.digest, ());
            }
        }
    }

    /// Whether it was still there.
    fn take_back(&self, look_ups: &mut HashMap<ApiKeyDigest, LookUp>) -> bool {
        let ours = look_ups.get(&self.digest).is_some_and(|look_up| look_up.number == self.number);
        if ours {
            look_ups.remove(&self.digest);
        }
        ours
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // Where it ended otherwise, the next one has to ask anew.
        self.take_back(&mut self.cache.look_ups());
    }
}
