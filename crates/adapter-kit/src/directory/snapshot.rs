//! The keys as a directory has them in memory, and what a store hands over to change them.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::SystemTime,
};

use animal_store_app::{ApiKey, ApiKeyDigest, ApiKeyId, ports::StoreFailure};

use crate::concurrency::Instant;

/// Changed keys, of one state of the store.
pub struct KeyChanges {
    /// The version of that state.
    pub version: i64,
    /// The keys. One without tokens does not exist. Of a key that is repeated, the last one counts.
    pub keys: Vec<StoredKey>,
    /// Whether no other key exists.
    pub is_complete: bool,
}

/// An API key, as a store keeps it.
pub struct StoredKey {
    /// The id, which may be malformed.
    pub id: ApiKeyId,
    /// The key, or the reason why it is not valid.
    pub key: Result<Arc<ApiKey>, String>,
    /// The digests of its tokens, with their expiry times.
    pub tokens: Vec<(ApiKeyDigest, Option<SystemTime>)>,
}

/// The keys of the last successful check.
pub(super) struct Snapshot {
    keys: HashMap<ApiKeyId, Arc<StoredKey>>,
    /// With their expiry times, by the clock of the store.
    tokens: HashMap<ApiKeyDigest, (Arc<StoredKey>, Option<SystemTime>)>,
    /// The time of the store, and when it was read.
    pub(super) clock: (SystemTime, Instant),
    pub(super) trusted_until: Instant,
    /// Why the last check failed.
    pub(super) failure: Option<String>,
}

impl Snapshot {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let (keys, tokens, clock) = (HashMap::new(), HashMap::new(), (SystemTime::now(), now));
        Self {
            keys,
            tokens,
            clock,
            trusted_until: now,
            failure: None,
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        Instant::now() < self.trusted_until
    }

    /// Returns the key of a token that has not expired.
    pub(super) fn find(&self, digest: &ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let found = self
            .tokens
            .get(digest)
            .filter(|(_, expires)| expires.is_none_or(|time| time > self.now()));
        let key = found.map(|(stored, _)| stored.key.clone()).transpose();
        key.map_err(|reason| StoreFailure::Corrupt(reason.into()))
    }

    /// Returns the present time of the store.
    fn now(&self) -> SystemTime {
        let (time, read_at) = self.clock;
        time + read_at.elapsed()
    }

    /// Replaces these keys, or all of them.
    pub(super) fn apply(&mut self, changes: KeyChanges) {
        if changes.is_complete {
            self.keys.clear();
            self.tokens.clear();
        }
        for key in changes.keys.into_iter().map(Arc::new) {
            for (digest, _) in self.keys.remove(&key.id).iter().flat_map(|old| &old.tokens) {
                // A token may have moved to another key.
                if let Entry::Occupied(token) = self.tokens.entry(*digest)
                    && token.get().0.id == key.id
                {
                    token.remove();
                }
            }
            self.tokens.extend(
                key.tokens
                    .iter()
                    .map(|(digest, expires)| (*digest, (Arc::clone(&key), *expires))),
            );
            if !key.tokens.is_empty() {
                self.keys.insert(key.id.clone(), key);
            }
        }
    }
}
