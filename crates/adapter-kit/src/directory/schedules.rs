//! Lookups, changes and slow or failed checks, under controlled schedules.

use std::{collections::HashMap, sync::Mutex};

use animal_store_app::test_support::api_key;
use animal_store_schedules::{chance, check, future, scheduling_point};

use super::*;

const TIMEOUT: Duration = Duration::from_millis(300);
const KEYS: u8 = 2;
const INTERVAL: Duration = Source::INTERVAL;
const TRUST: Duration = Source::TRUST;

/// A store in which each key has one token, which is replaced by changes.
#[derive(Default)]
struct Store {
    version: i64,
    /// The number of the token of each key, and the version of its last change.
    keys: [(u8, i64); KEYS as usize],
    /// When each token was revoked.
    revoked: HashMap<u8, Instant>,
}

struct Source(Arc<Mutex<Store>>);

impl KeySource for Source {
    const INTERVAL: Duration = Duration::from_millis(50);
    const TRUST: Duration = Duration::from_millis(100);

    fn address(&self) -> String {
        "store".to_owned()
    }

    async fn check(&mut self, known: Option<i64>) -> Result<KeyCheck, String> {
        // Some checks take longer than the keys are trusted, before or after they read.
        let slow = |chosen| chosen && chance(4);
        let before = chance(2);
        if slow(before) {
            sleep(TRUST).await;
        }
        scheduling_point();
        let changes = self.0.lock().unwrap().changes(known);
        if slow(!before) {
            sleep(TRUST).await;
        }
        if chance(6) {
            Err("a failed check".to_owned())
        } else {
            Ok(KeyCheck {
                now: SystemTime::UNIX_EPOCH,
                changes,
            })
        }
    }
}

impl Store {
    fn changes(&self, known: Option<i64>) -> Option<KeyChanges> {
        let changed =
            |(_, (_, version)): &(usize, &(u8, i64))| known.is_none_or(|known| *version > known);
        let key = |(id, (token, _)): (usize, &(u8, i64))| {
            let key = api_key(&id.to_string());
            StoredKey {
                id: key.id.clone(),
                key: Ok(Arc::new(key)),
                tokens: vec![(digest(*token), None)],
            }
        };
        let keys = self
            .keys
            .iter()
            .enumerate()
            .filter(changed)
            .map(key)
            .collect();
        (known != Some(self.version)).then_some(KeyChanges {
            version: self.version,
            keys,
            is_complete: known.is_none(),
        })
    }

    /// Replaces the token of a key. Returns the new token.
    fn rotate(&mut self, key: usize) -> u8 {
        self.version += 1;
        let old = self.keys[key].0;
        self.keys[key] = (old + KEYS, self.version);
        self.revoked.insert(old, Instant::now());
        old + KEYS
    }
}

fn digest(token: u8) -> ApiKeyDigest {
    ApiKeyDigest([token; 32])
}

/// Looks a token up. A revoked one is found only within the bound.
async fn find(directory: &ApiKeySnapshot, store: &Mutex<Store>, token: u8) -> bool {
    let began = Instant::now();
    let revoked = store.lock().unwrap().revoked.get(&token).copied();
    scheduling_point();
    match directory.find(digest(token)).await {
        Ok(Some(key)) => {
            assert_eq!(key.id.as_str(), (token % KEYS).to_string());
            assert!(
                revoked.is_none_or(|revoked| began < revoked + TRUST),
                "a revoked key was accepted for too long"
            );
            true
        }
        Ok(None) | Err(StoreFailure::Timeout) => false,
        Err(StoreFailure::Unavailable(cause)) => {
            assert_eq!(cause.to_string(), "a failed check");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_revoked_key_is_accepted_within_the_bound_only_and_each_change_arrives() {
    check("directory", || {
        let mut store = Store::default();
        store.keys = [(0, 0), (1, 0)];
        let store = Arc::new(Mutex::new(store));
        let (directory, checks) = ApiKeySnapshot::new(
            Source(Arc::clone(&store)),
            TIMEOUT,
            &mut Registry::default(),
        );
        let (directory, checks) = (Arc::new(directory), future::spawn(checks));
        let lookups: Vec<_> = (0..KEYS)
            .map(|key| {
                let (directory, store) = (Arc::clone(&directory), Arc::clone(&store));
                future::spawn(async move {
                    for token in [key, key + KEYS, key, key + KEYS] {
                        find(&directory, &store, token).await;
                        sleep(INTERVAL).await;
                    }
                })
            })
            .collect();
        let changes = {
            let (directory, store) = (Arc::clone(&directory), Arc::clone(&store));
            future::spawn(async move {
                for key in 0..usize::from(KEYS) {
                    let new = store.lock().unwrap().rotate(key);
                    while !find(&directory, &store, new).await {
                        sleep(INTERVAL).await;
                    }
                }
            })
        };
        future::block_on(async {
            for lookup in lookups {
                lookup.await.unwrap();
            }
            changes.await.unwrap();
            drop(directory);
            checks.await.unwrap();
        });
    });
}
