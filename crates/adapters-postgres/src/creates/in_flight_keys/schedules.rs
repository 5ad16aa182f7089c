//! The idempotency keys in flight, under controlled schedules.

use std::sync::atomic::{AtomicUsize, Ordering};

use animal_store_app::ApiKeyId;
use animal_store_schedules::{check, scheduling_point, thread};

use super::*;

#[test]
fn a_key_is_in_flight_once_and_free_again_afterwards() {
    check("PostgreSQL: idempotency keys in flight", || {
        let (keys, holders) = (Arc::new(InFlightKeys::default()), Arc::new(AtomicUsize::new(0)));
        let key = IdempotencyKey::new(ApiKeyId::new("key"), "once");
        let clients = (0..3).map(|_| {
            let (keys, holders, key) = (Arc::clone(&keys), Arc::clone(&holders), key.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    scheduling_point();
                    if let Some(in_flight) = keys.insert(key.clone()) {
                        assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "two creates have one key");
                        scheduling_point();
                        assert!(keys.insert(key.clone()).is_none(), "the key of a create is not free");
                        holders.fetch_sub(1, Ordering::Relaxed);
                        drop(in_flight);
                    }
                }
            })
        });
        clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().unwrap());
        assert!(keys.insert(key).is_some(), "the key is free");
        assert!(keys.lock().is_empty());
    });
}
