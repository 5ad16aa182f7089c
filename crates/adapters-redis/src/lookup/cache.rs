use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use animal_store_app::{ApiKey, ApiKeyDigest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::query::{LookupOutcome, TokenRecord};

/// Cached tokens, and the lookups in flight: at most one for each token.
///
/// Known and unknown tokens have separate bounds, so that a client cannot evict known tokens by sending invented ones.
pub(crate) struct Cache {
    known: quick_cache::sync::Cache<ApiKeyDigest, (Arc<ApiKey>, Option<Instant>)>,
    unknown: quick_cache::sync::Cache<ApiKeyDigest, ()>,
    /// Lookups whose records may be cached. An invalidation removes the lookup from this map, and so that permission.
    in_flight: Mutex<HashMap<ApiKeyDigest, OutcomeReceiver>>,
    permits: Arc<Semaphore>,
}

/// Receives the outcome of a lookup.
pub(crate) type OutcomeReceiver = watch::Receiver<Option<LookupOutcome>>;

/// What a request does for a token that is not in the cache.
pub(crate) enum LookupStart {
    /// It waits for the lookup that is in flight.
    Joined(OutcomeReceiver),
    /// It queries Redis and [finishes](PendingLookup::finish) the lookup.
    Started(PendingLookup, OutcomeReceiver),
    /// It fails: the bound on concurrent lookups is reached.
    Overloaded,
}

/// A lookup that is registered with the cache. If it is dropped unfinished, those that joined it fail.
pub(crate) struct PendingLookup {
    cache: Arc<Cache>,
    digest: ApiKeyDigest,
    outcome: watch::Sender<Option<LookupOutcome>>,
    _permit: OwnedSemaphorePermit,
}

impl Cache {
    pub(crate) fn new(max_known: usize, max_unknown: usize, max_lookups: usize) -> Self {
        Self {
            known: quick_cache::sync::Cache::new(max_known),
            unknown: quick_cache::sync::Cache::new(max_unknown),
            in_flight: Mutex::default(),
            permits: Arc::new(Semaphore::new(max_lookups)),
        }
    }

    /// Returns the record of a token, or `None` if Redis has to be queried.
    pub(crate) fn get(&self, digest: &ApiKeyDigest, now: Instant) -> Option<TokenRecord> {
        match self.known.get(digest) {
            Some((_, Some(expires))) if expires <= now => None,
            Some((key, expires)) => Some(TokenRecord::Known { key, expires }),
            None => self.unknown.get(digest).map(|()| TokenRecord::Unknown),
        }
    }

    /// Registers a lookup, or joins the one in flight for the same token.
    pub(crate) fn start_lookup(self: &Arc<Self>, digest: ApiKeyDigest) -> LookupStart {
        let mut in_flight = self.in_flight();
        if let Some(receiver) = in_flight.get(&digest) {
            return LookupStart::Joined(receiver.clone());
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else { return LookupStart::Overloaded };
        let (outcome, receiver) = watch::channel(None);
        in_flight.insert(digest, receiver.clone());
        LookupStart::Started(PendingLookup { cache: Arc::clone(self), digest, outcome, _permit: permit }, receiver)
    }

    /// Removes a token that was changed.
    pub(crate) fn invalidate(&self, digest: &ApiKeyDigest) {
        let mut in_flight = self.in_flight();
        in_flight.remove(digest);
        self.known.remove(digest);
        self.unknown.remove(digest);
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        let mut in_flight = self.in_flight();
        in_flight.clear();
        self.known.clear();
        self.unknown.clear();
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<ApiKeyDigest, OutcomeReceiver>> {
        // A panic under the lock leaves no partial change.
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingLookup {
    /// Sends the outcome to each request that waits, and caches the record unless the token was invalidated meanwhile.
    pub(crate) fn finish(self, outcome: LookupOutcome) {
        {
            let mut in_flight = self.cache.in_flight();
            if self.deregister(&mut in_flight)
                && let Ok(record) = &outcome
            {
                self.cache_record(record.clone());
            }
        }
        self.outcome.send_replace(Some(outcome));
    }

    fn cache_record(&self, record: TokenRecord) {
        let Cache { known, unknown, .. } = &*self.cache;
        match record {
            TokenRecord::Known { key, expires } => {
                unknown.remove(&self.digest);
                known.insert(self.digest, (key, expires));
            }
            TokenRecord::Unknown => {
                known.remove(&self.digest);
                unknown.insert(self.digest, ());
            }
        }
    }

    /// Returns whether the lookup was still registered: another one of the same token may be registered by now.
    fn deregister(&self, in_flight: &mut HashMap<ApiKeyDigest, OutcomeReceiver>) -> bool {
        let registered = in_flight.get(&self.digest);
        let registered = registered.is_some_and(|receiver| receiver.same_channel(&self.outcome.subscribe()));
        if registered {
            in_flight.remove(&self.digest);
        }
        registered
    }
}

impl Drop for PendingLookup {
    fn drop(&mut self) {
        self.deregister(&mut self.cache.in_flight());
    }
}
