//! The locks, timers and collections of the lookup cache. `time` has those of tokio's clock.
//!
//! `scripts/schedules` tests it with those of `animal_store_schedules` in their place.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, atomic::AtomicU64},
    time::Instant,
};

#[cfg(all(test, shuttle))]
pub(crate) use animal_store_schedules::{self as time, Instant, Mutex, MutexGuard, atomic::AtomicU64};
#[cfg(not(all(test, shuttle)))]
pub(crate) use quick_cache::sync::Cache as BoundedCache;
#[cfg(not(all(test, shuttle)))]
pub(crate) use tokio::time;

#[cfg(all(test, shuttle))]
pub(crate) use self::scheduled::BoundedCache;

#[cfg(all(test, shuttle))]
mod scheduled {
    use std::hash::Hash;

    use animal_store_schedules::scheduling_point;
    use quick_cache::sync::Cache;

    /// The cache, with a scheduling point before each operation.
    pub(crate) struct BoundedCache<K, V>(Cache<K, V>);

    impl<K: Eq + Hash, V: Clone> BoundedCache<K, V> {
        pub(crate) fn new(capacity: usize) -> Self {
            Self(Cache::new(capacity))
        }

        pub(crate) fn get(&self, key: &K) -> Option<V> {
            scheduling_point();
            self.0.get(key)
        }

        pub(crate) fn insert(&self, key: K, value: V) {
            scheduling_point();
            self.0.insert(key, value);
        }

        pub(crate) fn remove(&self, key: &K) {
            scheduling_point();
            self.0.remove(key);
        }

        pub(crate) fn clear(&self) {
            scheduling_point();
            self.0.clear();
        }

        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }
    }
}
