//! The keys as a directory has them in memory, and what a store hands over to change them.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::SystemTime,
};

use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{StoreFailure, StoreResult},
};

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
    /// Its tokens.
    pub tokens: Vec<StoredToken>,
}

/// A token of an API key, which may have expired.
#[derive(PartialEq, Eq)]
pub struct StoredToken {
    /// The digest.
    pub digest: ApiKeyDigest,
    /// Expiry time, by the clock of the store. `None`: never.
    pub expires: Option<SystemTime>,
}

/// The keys of the last successful check.
pub(super) struct Snapshot {
    pub(super) keys: KnownKeys,
    pub(super) clock: StoreClock,
    pub(super) trusted_until: Instant,
    /// Why the last check failed.
    pub(super) failure: Option<String>,
}

/// The clock of the store, as it was read. It may be fast by the duration of a check: tokens
/// expire early, never late.
pub(super) struct StoreClock {
    time: SystemTime,
    /// Before the store was asked.
    asked_at: Instant,
}

/// Keys by their ids and by their tokens.
#[derive(Default)]
pub(super) struct KnownKeys {
    keys: HashMap<String, Arc<StoredKey>>,
    tokens: HashMap<ApiKeyDigest, KnownToken>,
}

struct KnownToken {
    key: Arc<StoredKey>,
    expires: Option<SystemTime>,
}

/// A key that was added, changed or removed.
pub(super) struct Difference<'a> {
    pub(super) key: &'a StoredKey,
    /// Number of its valid tokens.
    pub(super) tokens: usize,
}

impl Snapshot {
    pub(super) fn new() -> Self {
        Self {
            keys: KnownKeys::default(),
            clock: StoreClock::at(SystemTime::now(), Instant::now()),
            trusted_until: Instant::now(),
            failure: None,
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        Instant::now() < self.trusted_until
    }

    /// Returns the key of a token that has not expired.
    pub(super) fn find(&self, digest: &ApiKeyDigest) -> StoreResult<Option<Arc<ApiKey>>> {
        let Some(token) = self.keys.tokens.get(digest) else {
            return Ok(None);
        };
        if let Some(expires) = token.expires
            && expires <= self.clock.now()
        {
            return Ok(None);
        }
        match &token.key.key {
            Ok(key) => Ok(Some(Arc::clone(key))),
            Err(reason) => Err(StoreFailure::Corrupt(reason.as_str().into())),
        }
    }
}

impl StoreClock {
    pub(super) fn at(time: SystemTime, asked_at: Instant) -> Self {
        Self { time, asked_at }
    }

    fn now(&self) -> SystemTime {
        self.time + self.asked_at.elapsed()
    }
}

impl KnownKeys {
    /// Adds or replaces keys.
    pub(super) fn apply(&mut self, keys: Vec<StoredKey>) {
        for key in keys {
            self.remove_tokens(&key.id);
            let key = Arc::new(key);
            for token in &key.tokens {
                let known = KnownToken {
                    key: Arc::clone(&key),
                    expires: token.expires,
                };
                self.tokens.insert(token.digest, known);
            }
            if !key.tokens.is_empty() {
                self.keys.insert(key.id.clone(), key);
            }
        }
    }

    fn remove_tokens(&mut self, id: &str) {
        let Some(old) = self.keys.remove(id) else {
            return;
        };
        for token in &old.tokens {
            // A token may have moved to another key.
            if let Entry::Occupied(known) = self.tokens.entry(token.digest)
                && known.get().key.id == id
            {
                known.remove();
            }
        }
    }

    /// Returns the keys that this delta adds, changes or removes. A token that has expired is as one that is gone.
    pub(super) fn differences<'a>(
        &'a self,
        delta: &'a KeyDelta,
        now: SystemTime,
    ) -> Vec<Difference<'a>> {
        let mut differences = Vec::new();
        let mut remaining = HashSet::new();
        for key in &delta.keys {
            remaining.insert(&key.id);
            if self.is_changed(key, now) {
                let tokens = key.valid_tokens(now).count();
                differences.push(Difference { key, tokens });
            }
        }
        if delta.is_complete {
            for key in self.keys.values() {
                if key.is_valid(now) && !remaining.contains(&key.id) {
                    differences.push(Difference { key, tokens: 0 });
                }
            }
        }
        differences
    }

    fn is_changed(&self, key: &StoredKey, now: SystemTime) -> bool {
        let Some(old) = self.keys.get(&key.id) else {
            return key.is_valid(now);
        };
        let old_tokens = old.valid_tokens(now);
        old.key != key.key || !old_tokens.eq(key.valid_tokens(now))
    }
}

impl StoredKey {
    fn is_valid(&self, now: SystemTime) -> bool {
        self.valid_tokens(now).next().is_some()
    }

    fn valid_tokens(&self, now: SystemTime) -> impl Iterator<Item = &StoredToken> {
        let is_valid = move |token: &&StoredToken| token.expires.is_none_or(|time| time > now);
        self.tokens.iter().filter(is_valid)
    }
}
