//! The keys as a directory has them in memory, and what a store hands over to change them.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::SystemTime,
};

use animal_store_app::{ApiKey, ApiKeyDigest, ports::StoreFailure};

use super::history::KeyState;
use crate::concurrency::Instant;

/// What has changed since a state that is known: the changed keys, of one state of the store.
pub struct KeyDelta {
    /// That state.
    pub state: KeyState,
    /// The keys. One without tokens does not exist. Of a key that is repeated, the last one counts.
    pub keys: Vec<StoredKey>,
    /// Whether no other key exists.
    pub is_complete: bool,
}

/// An API key, as a store keeps it.
#[derive(PartialEq, Eq)]
pub struct StoredKey {
    /// The id, which may be malformed.
    pub id: String,
    /// The key, or the reason why it is not valid.
    pub key: Result<Arc<ApiKey>, String>,
    /// The digests of its tokens, with their expiry times. They may have expired.
    pub tokens: Vec<(ApiKeyDigest, Option<SystemTime>)>,
}

/// The keys of the last successful check.
pub(super) struct Snapshot {
    pub(super) keys: KnownKeys,
    /// The time of the store, and when it was read.
    pub(super) clock: (SystemTime, Instant),
    pub(super) trusted_until: Instant,
    /// Why the last check failed.
    pub(super) failure: Option<String>,
}

/// Keys by their ids and by their tokens.
#[derive(Default)]
pub(super) struct KnownKeys {
    keys: HashMap<String, Arc<StoredKey>>,
    /// With their expiry times, by the clock of the store.
    tokens: HashMap<ApiKeyDigest, (Arc<StoredKey>, Option<SystemTime>)>,
}

/// A key that was added, changed or removed.
pub(super) struct Difference<'a> {
    pub(super) key: &'a StoredKey,
    /// Number of its valid tokens.
    pub(super) tokens: usize,
}

impl Snapshot {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            keys: KnownKeys::default(),
            clock: (SystemTime::now(), now),
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
            .keys
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
}

impl KnownKeys {
    /// Adds or replaces keys.
    pub(super) fn apply(&mut self, keys: Vec<StoredKey>) {
        for key in keys.into_iter().map(Arc::new) {
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

    /// Returns the keys that this delta adds, changes or removes. A token that has expired is as one that is gone.
    pub(super) fn differences<'a>(
        &'a self,
        delta: &'a KeyDelta,
        now: SystemTime,
    ) -> Vec<Difference<'a>> {
        let is_changed = |key: &&StoredKey| {
            let old = self.keys.get(&key.id);
            let old_tokens = old.iter().flat_map(|old| old.valid_tokens(now));
            let is_same = old.is_none_or(|old| old.key == key.key);
            !(is_same && old_tokens.eq(key.valid_tokens(now)))
        };
        let new = delta.keys.iter().filter(is_changed);
        let new = new.map(|key| Difference {
            key,
            tokens: key.valid_tokens(now).count(),
        });
        let remaining: HashSet<_> = delta.keys.iter().map(|key| &key.id).collect();
        let is_removed = |old: &&Arc<StoredKey>| {
            delta.is_complete
                && !remaining.contains(&old.id)
                && old.valid_tokens(now).next().is_some()
        };
        let removed = self.keys.values().filter(is_removed);
        let removed = removed.map(|key| Difference { key, tokens: 0 });
        new.chain(removed).collect()
    }
}

impl StoredKey {
    fn valid_tokens(
        &self,
        now: SystemTime,
    ) -> impl Iterator<Item = &(ApiKeyDigest, Option<SystemTime>)> {
        self.tokens
            .iter()
            .filter(move |(_, expires)| expires.is_none_or(|time| time > now))
    }
}
