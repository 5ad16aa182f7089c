use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use animal_store_app::ApiKeyDigest;
#[cfg(not(all(test, shuttle)))]
use quick_cache::sync::Cache as BoundedCache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, watch};

#[cfg(all(test, shuttle))]
use self::schedules::BoundedCache;
use crate::{
    concurrency::{Instant, Mutex, MutexGuard},
    keyspace,
    token::TokenRecord,
};

/// Cached tokens, and the lookups in flight: at most one for each token.
///
/// Known and unknown tokens have separate bounds, so that a client cannot evict known tokens by sending invented
/// tokens.
pub(crate) struct Cache {
    known: BoundedCache<ApiKeyDigest, TokenRecord>,
    unknown: BoundedCache<ApiKeyDigest, TokenRecord>,
    /// Lookups whose records may be cached. An invalidation removes the lookup from this map, which ends this
    /// permission.
    in_flight: Mutex<HashMap<ApiKeyDigest, OutcomeReceiver>>,
    permits: Arc<Semaphore>,
}

/// The outcome of a lookup, for each request that waits for it.
pub(crate) type LookupOutcome = keyspace::Result<TokenRecord>;
pub(crate) type OutcomeReceiver = watch::Receiver<Option<LookupOutcome>>;

/// A registered lookup that has to query Redis. If it is dropped unfinished, the requests that joined it fail.
pub(crate) struct PendingLookup {
    cache: Arc<Cache>,
    digest: ApiKeyDigest,
    outcome: watch::Sender<Option<LookupOutcome>>,
    _permit: OwnedSemaphorePermit,
}

impl Cache {
    pub(crate) fn new(max_known: usize, max_unknown: usize, max_lookups: usize) -> Self {
        Self {
            known: BoundedCache::new(max_known),
            unknown: BoundedCache::new(max_unknown),
            in_flight: Mutex::default(),
            permits: Arc::new(Semaphore::new(max_lookups)),
        }
    }

    /// Returns the record of a token, or `None` if Redis has to be queried.
    pub(crate) fn get(&self, digest: &ApiKeyDigest, now: Instant) -> Option<TokenRecord> {
        let record = self
            .known
            .get(digest)
            .or_else(|| self.unknown.get(digest))?;
        record
            .expires
            .is_none_or(|expires| now < expires)
            .then_some(record)
    }

    /// Joins the lookup of this token that is in flight, or registers one. Fails if the bound on lookups is reached.
    pub(crate) fn start_lookup(
        self: &Arc<Self>,
        digest: ApiKeyDigest,
    ) -> Result<(OutcomeReceiver, Option<PendingLookup>), TryAcquireError> {
        let mut in_flight = self.in_flight();
        if let Some(receiver) = in_flight.get(&digest) {
            return Ok((receiver.clone(), None));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned()?;
        let (outcome, receiver) = watch::channel(None);
        in_flight.insert(digest, receiver.clone());
        Ok((
            receiver,
            Some(PendingLookup {
                cache: Arc::clone(self),
                digest,
                outcome,
                _permit: permit,
            }),
        ))
    }

    /// Removes a token that was changed.
    pub(crate) fn invalidate(&self, digest: &ApiKeyDigest) {
        let mut in_flight = self.in_flight();
        in_flight.remove(digest);
        self.known.remove(digest);
        self.unknown.remove(digest);
    }

    pub(crate) fn clear(&self) {
        let mut in_flight = self.in_flight();
        in_flight.clear();
        self.known.clear();
        self.unknown.clear();
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<ApiKeyDigest, OutcomeReceiver>> {
        // A panic under the lock leaves no partial change.
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingLookup {
    /// Sends the outcome to each request that waits, and caches the record unless the token was invalidated meanwhile.
    pub(crate) fn finish(self, outcome: LookupOutcome) {
        let mut in_flight = self.cache.in_flight();
        if self.deregister(&mut in_flight)
            && let Ok(record) = &outcome
        {
            let Cache { known, unknown, .. } = &*self.cache;
            let (cache, other) = if record.key.is_some() {
                (known, unknown)
            } else {
                (unknown, known)
            };
            other.remove(&self.digest);
            cache.insert(self.digest, record.clone());
        }
        drop(in_flight);
        self.outcome.send_replace(Some(outcome));
    }

    /// Returns whether the lookup was still registered: another one of the same token may be registered by now.
    fn deregister(&self, in_flight: &mut HashMap<ApiKeyDigest, OutcomeReceiver>) -> bool {
        let is_own = |receiver: &OutcomeReceiver| receiver.same_channel(&self.outcome.subscribe());
        in_flight.get(&self.digest).is_some_and(is_own) && in_flight.remove(&self.digest).is_some()
    }
}

impl Drop for PendingLookup {
    fn drop(&mut self) {
        self.deregister(&mut self.cache.in_flight());
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(all(test, not(shuttle)))]
mod tests;
