use std::hash::Hash;

use animal_store_schedules::scheduling_point;
use quick_cache::sync::Cache as QuickCache;

/// The bounded cache, with a scheduling point before each operation.
pub(in crate::lookup::cache) struct BoundedCache<K, V>(QuickCache<K, V>);

impl<K: Eq + Hash, V: Clone> BoundedCache<K, V> {
    pub(in crate::lookup::cache) fn new(capacity: usize) -> Self {
        Self(QuickCache::new(capacity))
    }

    pub(in crate::lookup::cache) fn get(&self, key: &K) -> Option<V> {
        scheduling_point();
        self.0.get(key)
    }

    pub(in crate::lookup::cache) fn insert(&self, key: K, value: V) {
        scheduling_point();
        self.0.insert(key, value);
    }

    pub(in crate::lookup::cache) fn remove(&self, key: &K) {
        scheduling_point();
        self.0.remove(key);
    }

    pub(in crate::lookup::cache) fn clear(&self) {
        scheduling_point();
        self.0.clear();
    }
}
