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

/// A lookup that a request has joined.
pub(crate) struct JoinedLookup {
    pub(crate) outcome: OutcomeReceiver,
    /// The lookup, if this request has registered it.
    pub(crate) pending: Option<PendingLookup>,
}

/// A registered lookup that has to query Redis. If it is dropped unfinished, the requests that joined it fail.
pub(crate) struct PendingLookup {
    cache: Arc<Cache>,
    pub(crate) digest: ApiKeyDigest,
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
        let known = self.known.get(digest);
        let record = known.or_else(|| self.unknown.get(digest))?;
        let is_valid = record.expires.is_none_or(|expires| now < expires);
        is_valid.then_some(record)
    }

    /// Joins the lookup of this token that is in flight, or registers one. Fails if the bound on lookups is reached.
    pub(crate) fn join_lookup(
        self: &Arc<Self>,
        digest: ApiKeyDigest,
    ) -> Result<JoinedLookup, TryAcquireError> {
        let mut in_flight = self.in_flight();
        if let Some(outcome) = in_flight.get(&digest) {
            return Ok(JoinedLookup {
                outcome: outcome.clone(),
                pending: None,
            });
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned()?;
        let (sender, outcome) = watch::channel(None);
        in_flight.insert(digest, outcome.clone());
        let pending = PendingLookup {
            cache: Arc::clone(self),
            digest,
            outcome: sender,
            _permit: permit,
        };
        Ok(JoinedLookup {
            outcome,
            pending: Some(pending),
        })
    }

    fn insert(&self, digest: ApiKeyDigest, record: TokenRecord) {
        if record.key.is_some() {
            self.unknown.remove(&digest);
            self.known.insert(digest, record);
        } else {
            self.known.remove(&digest);
            self.unknown.insert(digest, record);
        }
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
        let was_registered = self.deregister(&mut in_flight);
        if was_registered && let Ok(record) = &outcome {
            self.cache.insert(self.digest, record.clone());
        }
        drop(in_flight);
        self.outcome.send_replace(Some(outcome));
    }

    /// Returns whether the lookup was still registered: another one of the same token may be registered by now.
    fn deregister(&self, in_flight: &mut HashMap<ApiKeyDigest, OutcomeReceiver>) -> bool {
        let own = self.outcome.subscribe();
        let registered = in_flight.get(&self.digest);
        let is_own = registered.is_some_and(|lookup| lookup.same_channel(&own));
        if is_own {
            in_flight.remove(&self.digest);
        }
        is_own
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
