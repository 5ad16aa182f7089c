//! Limits the number of requests of one API key, those that wait for their body included, so that one client cannot
//! take every permit.
//!
//! Each worker counts its own requests: a shared table would need a lock in every request.

use std::{cell::RefCell, collections::HashMap};

use animal_store_app::ApiKeyId;

/// Number of requests per API key in one worker. Keys without requests have no entry.
pub(crate) struct KeyShares {
    counts: RefCell<HashMap<ApiKeyId, usize>>,
    max: usize,
}

/// Permit of one request. It is returned when the request ends or its client disconnects.
pub(crate) struct KeyPermit<'a> {
    shares: &'a KeyShares,
    key: &'a ApiKeyId,
}

impl KeyShares {
    /// Allows this number of requests per key.
    pub(crate) fn new(max: usize) -> Self {
        Self { counts: RefCell::default(), max }
    }

    /// Returns a permit unless the key has reached its maximum.
    pub(crate) fn acquire<'a>(&'a self, key: &'a ApiKeyId) -> Option<KeyPermit<'a>> {
        let mut counts = self.counts.borrow_mut();
        match counts.get_mut(key) {
            Some(count) if *count >= self.max => return None,
            Some(count) => *count += 1,
            None => _ = counts.insert(key.clone(), 1),
        }
        Some(KeyPermit { shares: self, key })
    }
}

impl Drop for KeyPermit<'_> {
    fn drop(&mut self) {
        let mut counts = self.shares.counts.borrow_mut();
        match counts.get_mut(self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_maximum_and_no_entry_without_requests() {
        let shares = KeyShares::new(2);
        let [busy, other] = ["busy", "other"].map(ApiKeyId::new);

        let first = shares.acquire(&busy).expect("the first");
        let second = shares.acquire(&busy).expect("the second");
        assert!(shares.acquire(&busy).is_none());
        drop(shares.acquire(&other).expect("the first of the other key"));

        drop(first);
        let third = shares.acquire(&busy).expect("the permit of the first");
        assert!(shares.acquire(&busy).is_none());
        drop((second, third));
        assert!(shares.counts.borrow().is_empty());
    }
}
