//! Lookups, changes and slow or failed checks, under controlled schedules.

use std::{collections::HashMap, mem, sync::Mutex};

use animal_store_app::test_support::api_key;
use animal_store_schedules::{chance, check, future, scheduling_point};

use super::*;

const TIMEOUT: Duration = Duration::from_millis(300);
const KEYS: u8 = 2;
const INTERVAL: Duration = Source::INTERVAL;
const TRUST: Duration = Source::TRUST;

/// A store in which each key has one token, which is replaced by changes.
#[derive(Clone)]
struct Store {
    /// The mark of each version.
    marks: Vec<u8>,
    /// The number of the token of each key, and the version of its last change.
    keys: [(u8, i64); KEYS as usize],
}

/// The store that is in use.
struct World {
    store: Store,
    /// The greatest number of a mark or a token.
    used: u8,
    /// When each token was revoked, or its store was replaced by one without it.
    ended: HashMap<u8, Instant>,
}

struct Source(Arc<Mutex<World>>);

impl KeySource for Source {
    const INTERVAL: Duration = Duration::from_millis(50);
    const TRUST: Duration = Duration::from_millis(100);

    fn address(&self) -> String {
        "store".to_owned()
    }

    async fn check(&mut self, known: Option<&KeyState>) -> Result<KeyCheck, String> {
        // Some checks take longer than the keys are trusted, before or after they read.
        let slow = |chosen| chosen && chance(4);
        let before = chance(2);
        if slow(before) {
            sleep(TRUST).await;
        }
        scheduling_point();
        let delta = self.0.lock().unwrap().store.delta(known);
        if slow(!before) {
            sleep(TRUST).await;
        }
        if chance(6) {
            Err("a failed check".to_owned())
        } else {
            Ok(KeyCheck {
                now: SystemTime::UNIX_EPOCH,
                delta,
            })
        }
    }
}

impl Store {
    fn version(&self) -> i64 {
        self.marks.len().try_into().unwrap()
    }

    /// Without the check of the numbers, which are always right here.
    fn delta(&self, known: Option<&KeyState>) -> Option<KeyDelta> {
        let state = KeyState {
            version: self.version(),
            mark: self.marks.last().copied().into_iter().collect(),
            counts: KeyCounts::default(),
        };
        if known == Some(&state) {
            return None;
        }
        let since = known.filter(|known| state.continues(known, self.marks_since(known)));
        let since = since.map(|known| known.version);
        let keys = self.keys.iter().enumerate();
        let changed = keys.filter(|(_, (_, version))| since.is_none_or(|since| *version > since));
        let keys = changed.map(|(id, (token, _))| {
            let key = api_key(&id.to_string());
            StoredKey {
                id: key.id.to_string(),
                key: Ok(Arc::new(key)),
                tokens: vec![StoredToken {
                    digest: digest(*token),
                    expires: None,
                }],
            }
        });
        Some(KeyDelta {
            state,
            keys: keys.collect(),
            is_complete: since.is_none(),
        })
    }

    fn marks_since(&self, known: &KeyState) -> i64 {
        let marks = (1..).zip(&self.marks);
        let counted = marks.filter(|(version, mark)| {
            *version > known.version || *version == known.version && known.mark == [**mark]
        });
        counted.count().try_into().unwrap()
    }
}

impl World {
    fn new() -> Self {
        Self {
            store: Store {
                marks: Vec::new(),
                keys: [(0, 0), (1, 0)],
            },
            used: 0,
            ended: HashMap::new(),
        }
    }

    /// Returns a number that was not used, of a mark or of the token of the first key.
    fn fresh(&mut self) -> u8 {
        self.used += KEYS;
        self.used
    }

    /// Replaces the token of a key.
    fn rotate(&mut self, key: u8) {
        let new = self.fresh() + key;
        self.store.marks.push(new);
        let version = self.store.version();
        let old = mem::replace(&mut self.store.keys[usize::from(key)], (new, version));
        self.ended.insert(old.0, Instant::now());
    }

    /// Returns another store that has this version.
    fn another(&mut self, version: usize) -> Store {
        Store {
            marks: (0..version).map(|_| self.fresh()).collect(),
            keys: [(self.fresh(), 0), (self.fresh() + 1, 0)],
        }
    }

    /// Puts a store in place of this one.
    fn restore(&mut self, store: Store) {
        let replaced = mem::replace(&mut self.store, store);
        for (token, _) in replaced.keys {
            self.ended.insert(token, Instant::now());
        }
        for (token, _) in self.store.keys {
            self.ended.remove(&token);
        }
    }
}

fn digest(token: u8) -> ApiKeyDigest {
    ApiKeyDigest([token; 32])
}

/// Looks a token up. One that has ended is found only within the bound, unless a restore has brought it back meanwhile.
async fn find(directory: &ApiKeySnapshot, world: &Mutex<World>, token: u8) -> bool {
    let began = Instant::now();
    let end = || world.lock().unwrap().ended.get(&token).copied();
    let ended = end();
    scheduling_point();
    match directory.find(digest(token)).await {
        Ok(Some(key)) => {
            assert_eq!(key.id.as_str(), (token % KEYS).to_string());
            assert!(
                ended.is_none_or(|ended| began < ended + TRUST) || end() != ended,
                "a token that has ended was accepted for too long"
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

/// Waits until the keys of the store are found.
async fn wait_for_keys(directory: &ApiKeySnapshot, world: &Mutex<World>) {
    for key in 0..usize::from(KEYS) {
        let token = world.lock().unwrap().store.keys[key].0;
        while !find(directory, world, token).await {
            sleep(INTERVAL).await;
        }
    }
}

/// Looks the first tokens of each key up while `change` runs.
fn check_bound<F>(
    name: &str,
    change: impl Fn(Arc<ApiKeySnapshot>, Arc<Mutex<World>>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    check(name, move || {
        let world = Arc::new(Mutex::new(World::new()));
        let (directory, checks) = ApiKeySnapshot::new(
            Source(Arc::clone(&world)),
            TIMEOUT,
            &mut Registry::default(),
        );
        let directory = Arc::new(directory);
        let checks = future::spawn(checks);
        let lookups: Vec<_> = (0..KEYS)
            .map(|key| {
                let directory = Arc::clone(&directory);
                let world = Arc::clone(&world);
                future::spawn(async move {
                    for token in [key, key + KEYS, key, key + KEYS] {
                        find(&directory, &world, token).await;
                        sleep(INTERVAL).await;
                    }
                })
            })
            .collect();
        let changes = future::spawn(change(Arc::clone(&directory), world));
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

#[test]
fn a_revoked_key_is_accepted_within_the_bound_only_and_each_change_arrives() {
    check_bound("directory", |directory, world| async move {
        for key in 0..KEYS {
            world.lock().unwrap().rotate(key);
            wait_for_keys(&directory, &world).await;
        }
    });
}

/// An earlier state of the store, or another store with any version, takes its place. It may be changed at once.
#[test]
fn of_a_store_that_is_replaced_only_its_own_keys_are_accepted_within_the_bound() {
    check_bound("replaced_store", |directory, world| async move {
        let backup = world.lock().unwrap().store.clone();
        world.lock().unwrap().rotate(0);
        wait_for_keys(&directory, &world).await;
        {
            let mut world = world.lock().unwrap();
            let other = if chance(2) {
                backup
            } else {
                let version = usize::from(chance(2)) + usize::from(chance(2));
                world.another(version)
            };
            world.restore(other);
            for key in 0..KEYS {
                if chance(2) {
                    world.rotate(key);
                }
            }
        }
        wait_for_keys(&directory, &world).await;
    });
}
