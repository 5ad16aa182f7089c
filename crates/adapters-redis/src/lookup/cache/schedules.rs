//! Cache, lease, sessions and invalidations, under controlled schedules.

use std::{
    collections::VecDeque,
    future::pending,
    hash::Hash,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use animal_store_app::{ApiKey, ApiKeyId, ApiKeyLabel, Scopes};
use animal_store_schedules::{chance, check, future, scheduling_point, sleep};
use prometheus_client::registry::Registry;
use quick_cache::sync::Cache as QuickCache;
use redis::Value;

use super::*;
use crate::{
    connection::{RedisEndpoint, RedisTls},
    keyspace::RedisFailure,
    lookup::state::LookupState,
    metrics::Metrics,
    settings::RedisSettings,
};

const LEASE: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(1);
const MAX_LOOKUPS: usize = 2;
const DIGEST: ApiKeyDigest = ApiKeyDigest::from_bytes([7; 32]);

static ENDPOINT: LazyLock<RedisEndpoint> =
    LazyLock::new(|| RedisEndpoint::parse(&"redis://127.0.0.1".into(), RedisTls::default()).unwrap());

/// The bounded cache, with a scheduling point before each operation.
pub(super) struct BoundedCache<K, V>(QuickCache<K, V>);

impl<K: Eq + Hash, V: Clone> BoundedCache<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self(QuickCache::new(capacity))
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        scheduling_point();
        self.0.get(key)
    }

    pub(super) fn insert(&self, key: K, value: V) {
        scheduling_point();
        self.0.insert(key, value);
    }

    pub(super) fn remove(&self, key: &K) {
        scheduling_point();
        self.0.remove(key);
    }

    pub(super) fn clear(&self) {
        scheduling_point();
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A token in Redis: its version, and what the current session has not read yet.
struct Redis {
    /// The moment of each change; the number of changes is the version.
    changes: Vec<Instant>,
    /// `None` between two sessions.
    session: Option<u32>,
    events: VecDeque<Event>,
}

enum Event {
    Invalidation { version: usize },
    Pong { sent: Instant },
}

struct World {
    state: LookupState<u32>,
    redis: Mutex<Redis>,
    /// Version before which no read may return a record if it begins now.
    invalidated: AtomicU64,
}

/// Versions with an even number belong to a key.
fn record(version: usize) -> TokenRecord {
    let key = |id: &str| ApiKey {
        id: ApiKeyId::new(id),
        label: ApiKeyLabel::parse("label").unwrap(),
        scopes: Scopes::default(),
    };
    let key = version.is_multiple_of(2).then(|| Arc::new(key(&version.to_string())));
    // A token without a key has its version in its time to live.
    TokenRecord { key, expires: Some(*START + FOREVER * (1 + u32::try_from(version).unwrap())) }
}

const FOREVER: Duration = Duration::from_secs(1 << 40);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn version(record: &TokenRecord) -> usize {
    let version = (record.expires.unwrap() - *START).as_secs() / FOREVER.as_secs() - 1;
    assert_eq!(record.key.is_some(), version.is_multiple_of(2));
    usize::try_from(version).unwrap()
}

/// Waits for some steps of other tasks.
async fn pause() {
    while chance(2) {
        future::yield_now().await;
    }
}

impl World {
    fn new() -> Arc<Self> {
        let settings = RedisSettings {
            prefix: String::new(),
            timeout: TIMEOUT,
            lease: LEASE,
            max_known: 4,
            max_unknown: 4,
            max_lookups: MAX_LOOKUPS,
            use_interval: TIMEOUT,
        };
        let state = LookupState::new(ENDPOINT.clone(), &settings, Metrics::register(&mut Registry::default()));
        let redis = Redis { changes: Vec::new(), session: None, events: VecDeque::new() };
        Arc::new(Self { state, redis: Mutex::new(redis), invalidated: AtomicU64::new(0) })
    }

    fn redis(&self) -> MutexGuard<'_, Redis> {
        self.redis.lock().unwrap()
    }

    /// Changes the token twice. A session gets an invalidation, which is behind no later response.
    async fn change(&self) {
        for _ in 0..2 {
            {
                let mut redis = self.redis();
                redis.changes.push(Instant::now());
                let version = redis.changes.len();
                if redis.session.is_some() {
                    redis.events.push_back(Event::Invalidation { version });
                }
            }
            if chance(2) {
                sleep(LEASE / 2).await;
            }
        }
    }

    /// Opens sessions, which are lost after a while; the last one is not.
    async fn supervise(&self) {
        for session in 1..=2 {
            {
                let mut redis = self.redis();
                redis.session = Some(session);
                redis.events.clear();
            }
            self.ping();
            while self.handle_event() {}
            self.state.begin_session(session);
            for _ in 0..4 {
                if chance(3) {
                    self.ping();
                }
                if chance(3) {
                    sleep(LEASE / 2).await;
                }
                self.handle_event();
                future::yield_now().await;
            }
            if session == 1 {
                // Redis closes the connection, or the client does because it is late.
                if chance(2) {
                    self.redis().session = None;
                }
                pause().await;
                let version = self.redis().changes.len();
                self.state.end_session();
                self.redis().session = None;
                self.invalidated.fetch_max(version as u64, Ordering::Relaxed);
            }
        }
        while self.handle_event() {}
    }

    fn ping(&self) {
        let sent = Instant::now();
        scheduling_point();
        self.redis().events.push_back(Event::Pong { sent });
    }

    /// Handles an event in the order of the connection. Returns whether there was one.
    fn handle_event(&self) -> bool {
        let event = self.redis().events.pop_front();
        match &event {
            Some(Event::Invalidation { version }) => {
                let name = Value::BulkString(self.state.keyspace.token(&DIGEST).into());
                self.state.invalidate(Some(&Value::Array(vec![name])));
                self.invalidated.fetch_max(*version as u64, Ordering::Relaxed);
            }
            Some(Event::Pong { sent }) => self.state.lease.renew(*sent),
            None => {}
        }
        event.is_some()
    }

    /// Reads the token in Redis. The response of a session that was lost may never arrive.
    async fn query(&self, session: u32) -> LookupOutcome {
        future::yield_now().await;
        let version = {
            let redis = self.redis();
            if redis.session == Some(session) { Some(redis.changes.len()) } else { None }
        };
        pause().await;
        let lost = self.redis().session != Some(session);
        match version {
            Some(version) if !lost || chance(2) => Ok(record(version)),
            _ => pending().await,
        }
    }

    /// Looks the token up as `RedisApiKeyDirectory` does.
    async fn find(self: &Arc<Self>) {
        let invalidated = usize::try_from(self.invalidated.load(Ordering::Relaxed)).unwrap();
        let LookupState { lease, cache, .. } = &self.state;
        let now = Instant::now();
        if lease.is_valid(now)
            && let Some(record) = cache.get(&DIGEST, now)
        {
            let version = version(&record);
            assert!(version >= invalidated, "a cached record is older than an invalidation");
            let changed = self.redis().changes.get(version).copied();
            assert!(changed.is_none_or(|changed| now < changed + LEASE), "a cached record is older than the lease");
            return;
        }
        let Ok((mut outcome, pending)) = cache.start_lookup(DIGEST) else {
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
        match outcome.wait_for(Option::is_some).await.map(|outcome| outcome.clone().unwrap()) {
            Ok(Ok(record)) => assert!(version(&record) >= invalidated, "a lookup is older than an invalidation"),
            Ok(Err(error)) => assert!(matches!(error, RedisFailure::Unavailable(_) | RedisFailure::Timeout)),
            Err(_) => {}
        }
    }
}

#[test]
fn no_read_returns_a_record_from_before_an_invalidation() {
    check("Redis: the lookup cache", || {
        let _ = *START;
        let world = World::new();
        let (change, supervise) = (Arc::clone(&world), Arc::clone(&world));
        let mut tasks = vec![
            future::spawn(async move { change.change().await }),
            future::spawn(async move { supervise.supervise().await }),
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
            world.invalidated.fetch_max(newest as u64, Ordering::Relaxed);
            world.find().await;
        });
        assert!(world.state.cache.in_flight().is_empty(), "no lookup stays registered");
    });
}
