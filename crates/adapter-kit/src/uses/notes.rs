//! Uses of API keys that are not written yet.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::{ApiKeyId, ports::ApiKeyUse};

const KINDS: usize = ApiKeyUse::ALL.len();

/// The keys that were used in one worker since the last write. A note takes only a lock that no other worker takes.
#[derive(Debug)]
pub(super) struct NotedUses {
    uses: Mutex<Uses>,
    max_keys: usize,
}

#[derive(Debug, Default)]
struct Uses {
    /// The keys of each kind.
    keys: [HashSet<ApiKeyId>; KINDS],
    /// Number of uses beyond the bound.
    dropped: u64,
}

/// The uses of all workers that are not written yet, with their times.
#[derive(Debug, Clone)]
pub struct PendingUses {
    /// The times of each kind.
    times: [HashMap<ApiKeyId, u64>; KINDS],
    max_keys: usize,
}

impl NotedUses {
    /// Creates a record without uses, for at most this number of keys of each kind.
    pub(super) fn new(max_keys: usize) -> Self {
        Self { uses: Mutex::default(), max_keys }
    }

    /// Notes a use.
    pub(super) fn note(&self, id: &ApiKeyId, kind: ApiKeyUse) {
        let mut uses = self.lock();
        let keys = &mut uses.keys[kind as usize];
        if keys.contains(id) {
            return;
        }
        if keys.len() < self.max_keys {
            keys.insert(id.clone());
        } else {
            uses.dropped += 1;
        }
    }

    fn take(&self) -> Uses {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Uses> {
        // A panic under the lock leaves no partial change.
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingUses {
    /// Creates a record without uses, for at most this number of keys of each kind.
    pub(super) fn new(max_keys: usize) -> Self {
        Self { times: Default::default(), max_keys }
    }

    /// Takes the notes of all workers, with this time in seconds since 1970. Returns the number of uses beyond the
    /// bounds, which are dropped.
    pub(super) fn collect(&mut self, workers: &[Arc<NotedUses>], now: u64) -> u64 {
        let mut dropped = 0;
        for worker in workers {
            let uses = worker.take();
            dropped += uses.dropped;
            for (times, keys) in self.times.iter_mut().zip(uses.keys) {
                for id in keys {
                    if times.len() < self.max_keys || times.contains_key(&id) {
                        times.insert(id, now);
                    } else {
                        dropped += 1;
                    }
                }
            }
        }
        dropped
    }

    /// Whether there are no uses.
    pub(super) fn is_empty(&self) -> bool {
        self.times.iter().all(HashMap::is_empty)
    }

    /// Iterates over the kinds, each with the keys that were used and the times in seconds since 1970.
    pub fn iter(&self) -> impl Iterator<Item = (ApiKeyUse, &HashMap<ApiKeyId, u64>)> {
        ApiKeyUse::ALL.into_iter().zip(&self.times)
    }

    /// Removes all uses.
    pub(super) fn clear(&mut self) {
        self.times = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pending: &PendingUses) -> Vec<Vec<(String, u64)>> {
        pending.iter().map(|(_, times)| times.iter().map(|(id, time)| (id.to_string(), *time)).collect()).collect()
    }

    #[test]
    fn the_uses_of_all_workers_are_collected_by_kind_with_the_latest_time() {
        let workers = [(); 2].map(|()| Arc::new(NotedUses::new(10)));
        let mut pending = PendingUses::new(10);
        assert!(pending.is_empty());

        let [a, b] = ["a", "b"].map(ApiKeyId::new);
        workers[0].note(&a, ApiKeyUse::Request);
        workers[1].note(&b, ApiKeyUse::GetPet);
        assert_eq!(pending.collect(&workers, 60), 0);
        assert!(!pending.is_empty());
        workers[1].note(&a, ApiKeyUse::Request);
        workers[1].note(&a, ApiKeyUse::Request);
        assert_eq!(pending.collect(&workers, 120), 0);
        assert_eq!(times(&pending), [[("a".to_owned(), 120)], [("b".to_owned(), 60)]]);

        pending.clear();
        assert!(pending.is_empty());
    }

    #[test]
    fn uses_beyond_a_bound_are_counted_and_dropped() {
        for (bound_of_sum, kept, dropped_by_worker, dropped_by_sum) in [(10, 2, 1, 0), (1, 1, 1, 1)] {
            let worker = Arc::new(NotedUses::new(2));
            for id in ["a", "b", "a", "c", "b"] {
                worker.note(&ApiKeyId::new(id), ApiKeyUse::Request);
            }
            let mut pending = PendingUses::new(bound_of_sum);
            assert_eq!(pending.collect(&[worker], 60), dropped_by_worker + dropped_by_sum);
            assert_eq!(times(&pending)[0].len(), kept);
        }
    }
}
