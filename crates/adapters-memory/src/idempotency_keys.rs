use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use animal_store_app::IdempotencyKey;
use animal_store_domain::PetId;

/// The pets that were added with an idempotency key, during the retention of the key.
///
/// Each insertion removes up to two expired keys. The size of the map is therefore bounded by the number of keys that
/// were valid at the same time. No task sweeps, and no `add` removes many keys.
#[derive(Debug)]
pub(crate) struct IdempotencyKeys {
    retention: Duration,
    /// The pet of each key, and when the key expires.
    pets: HashMap<IdempotencyKey, (PetId, Instant)>,
    /// The keys in order of expiry.
    expiries: VecDeque<(IdempotencyKey, Instant)>,
}

impl IdempotencyKeys {
    pub(crate) fn new(retention: Duration) -> Self {
        Self {
            retention,
            pets: HashMap::new(),
            expiries: VecDeque::new(),
        }
    }

    /// Returns the pet that was added with this key.
    pub(crate) fn find(&self, key: &IdempotencyKey, now: Instant) -> Option<PetId> {
        self.pets
            .get(key)
            .filter(|(_, expires)| now < *expires)
            .map(|(id, _)| *id)
    }

    /// Records that a pet was added with this key. The key must be free.
    pub(crate) fn insert(&mut self, key: IdempotencyKey, id: PetId, now: Instant) {
        self.remove_expired(now);
        self.remove_expired(now);
        let expires = now + self.retention;
        self.expiries.push_back((key.clone(), expires));
        self.pets.insert(key, (id, expires));
    }

    fn remove_expired(&mut self, now: Instant) {
        if let Some((key, expired)) = self.expiries.pop_front_if(|(_, expires)| *expires <= now) {
            // It may have been inserted again since.
            if self
                .pets
                .get(&key)
                .is_some_and(|(_, expires)| *expires == expired)
            {
                self.pets.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use animal_store_app::test_support::api_key_id;

    use super::*;

    const RETENTION: Duration = Duration::from_hours(24);

    fn key(number: usize) -> IdempotencyKey {
        IdempotencyKey::new(api_key_id("key"), &number.to_string())
    }

    fn id(id: i64) -> PetId {
        PetId::parse(id).unwrap()
    }

    #[test]
    fn a_key_has_its_pet_until_it_expires() {
        let start = Instant::now();
        let mut keys = IdempotencyKeys::new(RETENTION);
        keys.insert(key(0), id(1), start);
        let found = |age| keys.find(&key(0), start + age);
        assert_eq!(found(Duration::ZERO), Some(id(1)));
        assert_eq!(found(RETENTION), None);
    }

    #[test]
    fn expired_keys_are_removed() {
        let start = Instant::now();
        let mut keys = IdempotencyKeys::new(RETENTION);
        for number in 0..1000 {
            keys.insert(key(number), id(1), start);
        }
        for number in 1000..3000 {
            keys.insert(
                key(number),
                id(1),
                start + RETENTION * u32::try_from(number / 1000).unwrap(),
            );
            assert!(keys.pets.len() <= 1000 && keys.expiries.len() <= 1000);
        }
        assert_eq!((keys.pets.len(), keys.expiries.len()), (1000, 1000));
    }
}
