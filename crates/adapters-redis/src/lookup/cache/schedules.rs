//! Cache, lease, sessions and invalidations, under controlled schedules.

mod bounded_cache;
mod world;

use std::{
    sync::{LazyLock, atomic::Ordering},
    time::Duration,
};

use animal_store_app::test_support::api_key;
use animal_store_schedules::{chance, check, future};

pub(super) use self::bounded_cache::BoundedCache;
use self::world::{World, pause};
use super::*;
use crate::{keyspace::RedisFailure, lookup::state::LookupState};

const LEASE: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(1);
const MAX_LOOKUPS: usize = 2;
const DIGEST: ApiKeyDigest = ApiKeyDigest([7; 32]);

/// Versions with an even number belong to a key.
fn record(version: usize) -> TokenRecord {
    let key = version
        .is_multiple_of(2)
        .then(|| Arc::new(api_key(&version.to_string())));
    // A token without a key has its version in its time to live.
    TokenRecord {
        key,
        expires: Some(*START + FOREVER * (1 + u32::try_from(version).unwrap())),
    }
}

const FOREVER: Duration = Duration::from_secs(1 << 40);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn version(record: &TokenRecord) -> usize {
    let version = (record.expires.unwrap() - *START).as_secs() / FOREVER.as_secs() - 1;
    assert_eq!(record.key.is_some(), version.is_multiple_of(2));
    usize::try_from(version).unwrap()
}

impl World {
    /// Looks the token up as `RedisApiKeyDirectory` does.
    async fn find(self: &Arc<Self>) {
        let invalidated = usize::try_from(self.invalidated.load(Ordering::Relaxed)).unwrap();
        let LookupState { lease, cache, .. } = &self.state;
        let now = Instant::now();
        if lease.is_valid(now)
            && let Some(record) = cache.get(&DIGEST, now)
        {
            let version = version(&record);
            assert!(
                version >= invalidated,
                "a cached record is older than an invalidation"
            );
            let changed = self.redis().changes.get(version).copied();
            assert!(
                changed.is_none_or(|changed| now < changed + LEASE),
                "a cached record is older than the lease"
            );
            return;
        }
        let Ok(JoinedLookup {
            mut outcome,
            pending,
        }) = cache.join_lookup(DIGEST)
        else {
            return;
        };
        if let Some(pending) = pending {
            let world = Arc::clone(self);
            future::spawn(async move {
                let outcome = world.state.look_up(|session| world.query(session)).await;
                pause().await;
                // A lookup can end without an outcome if its runtime is shut down.
                if !chance(8) {
                    pending.finish(outcome);
                }
            });
        }
        match outcome
            .wait_for(Option::is_some)
            .await
            .map(|outcome| outcome.clone().unwrap())
        {
            Ok(Ok(record)) => assert!(
                version(&record) >= invalidated,
                "a lookup is older than an invalidation"
            ),
            Ok(Err(error)) => assert!(matches!(
                error,
                RedisFailure::Unavailable(_) | RedisFailure::Timeout
            )),
            Err(_) => {}
        }
    }
}

#[test]
fn no_read_returns_a_record_from_before_an_invalidation() {
    check("Redis: the lookup cache", || {
        let _ = *START;
        let world = World::new();
        let change = Arc::clone(&world);
        let supervise = Arc::clone(&world);
        let mut tasks = vec![
            future::spawn(async move { change.change().await }),
            future::spawn(async move {
                supervise.supervise().await;
                drop(future::spawn(async move { supervise.keep_lease().await }));
            }),
        ];
        tasks.extend((0..3).map(|_| {
            let world = Arc::clone(&world);
            future::spawn(async move {
                for _ in 0..3 {
                    world.find().await;
                    future::yield_now().await;
                }
            })
        }));
        future::block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
            // The permit of a lookup returns after its outcome.
            while world.state.cache.permits.available_permits() < MAX_LOOKUPS {
                future::yield_now().await;
            }
            // The last session has handled all invalidations: what is cached by now is the newest version.
            world.ping();
            while world.handle_event() {}
            let newest = world.redis().changes.len();
            world
                .invalidated
                .fetch_max(newest as u64, Ordering::Relaxed);
            world.find().await;
        });
        assert!(
            world.state.cache.in_flight().is_empty(),
            "no lookup stays registered"
        );
    });
}
