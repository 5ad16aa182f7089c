use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use animal_store_app::IdempotencyKey;
use animal_store_domain::PetId;

/// Which idempotency key added which animal, as long as that is kept.
///
/// Each key that is kept lets two go whose time is over: so there are never more than were needed at once before, without
/// anybody to sweep and without an add that has to sweep much.
#[derive(Debug)]
pub(crate) struct IdempotencyKeys {
    retention: Duration,
    kept: HashMap<IdempotencyKey, Kept>,
    /// In the order in which their time is over.
    ends: VecDeque<(IdempotencyKey, Instant)>,
}

#[derive(Debug)]
struct Kept {
    id: PetId,
    until: Instant,
}

impl IdempotencyKeys {
    pub(crate) fn new(retention: Duration) -> Self {
        Self { retention, kept: HashMap::new(), ends: VecDeque::new() }
    }

    /// The animal that this key added.
    pub(crate) fn find(&self, key: &IdempotencyKey, now: Instant) -> Option<PetId> {
        self.kept.get(key).filter(|kept| kept.until > now).map(|kept| kept.id)
    }

    /// Keeps that this key, which is free, added this animal.
    pub(crate) fn keep(&mut self, key: IdempotencyKey, id: PetId, now: Instant) {
        self.let_go(now);
        self.let_go(now);
        let until = now + self.retention;
        self.ends.push_back((key.clone(), until));
        self.kept.insert(key, Kept { id, until });
    }

    fn let_go(&mut self, now: Instant) {
        if let Some((key, until)) = self.ends.pop_front_if(|(_, until)| *until <= now) {
            // Unless it was taken anew.
            if self.kept.get(&key).is_some_and(|kept| kept.until == until) {
                self.kept.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use animal_store_app::ApiKeyId;

    use super::*;

    const RETENTION: Duration = Duration::from_hours(24);

    fn key(number: usize) -> IdempotencyKey {
        IdempotencyKey::new(ApiKeyId::new("key"), &number.to_string())
    }

    fn id(id: i64) -> PetId {
        PetId::parse(id).unwrap()
    }

    #[test]
    fn a_key_is_kept_until_its_time_is_over_and_can_then_be_taken_anew() {
        let start = Instant::now();
        let (in_time, end) = (start + RETENTION / 2, start + RETENTION);
        let mut keys = IdempotencyKeys::new(RETENTION);
        keys.keep(key(1), id(1), start);
        assert_eq!(keys.find(&key(1), in_time), Some(id(1)));
        assert_eq!(keys.find(&key(1), end), None);

        keys.keep(key(1), id(2), end);
        // This one lets the first end go by.
        keys.keep(key(2), id(3), end);
        assert_eq!(keys.find(&key(1), end), Some(id(2)));
    }

    #[test]
    fn no_more_is_kept_than_was_needed_at_once() {
        let start = Instant::now();
        let mut keys = IdempotencyKeys::new(RETENTION);
        for number in 0..1000 {
            keys.keep(key(number), id(1), start);
        }
        for number in 1000..3000 {
            keys.keep(key(number), id(1), start + RETENTION * u32::try_from(number / 1000).unwrap());
            assert!(keys.kept.len() <= 1000 && keys.ends.len() <= 1000);
        }
        assert_eq!((keys.kept.len(), keys.ends.len()), (1000, 1000));
    }
}
