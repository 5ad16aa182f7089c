use std::{collections::VecDeque, future::pending, sync::atomic::AtomicU64};

use animal_store_schedules::{chance, future, scheduling_point, sleep};
use prometheus_client::registry::Registry;
use redis::Value;

use super::*;
use crate::{
    connection::{RedisEndpoint, RedisTls},
    settings::RedisSettings,
};

static ENDPOINT: LazyLock<RedisEndpoint> = LazyLock::new(|| {
    RedisEndpoint::parse(&"redis://127.0.0.1".into(), RedisTls::default()).unwrap()
});

/// A token in Redis: its version, and what the current session has not read yet.
pub(super) struct Redis {
    /// The moment of each change; the number of changes is the version.
    pub(super) changes: Vec<Instant>,
    /// `None` between two sessions.
    session: Option<u32>,
    events: VecDeque<Event>,
}

enum Event {
    Invalidation { version: usize },
    Pong { sent: Instant },
}

pub(super) struct World {
    pub(super) state: LookupState<u32>,
    redis: Mutex<Redis>,
    /// Version before which no read may return a record if it begins now.
    pub(super) invalidated: AtomicU64,
}

/// Waits for some steps of other tasks.
pub(super) async fn pause() {
    while chance(2) {
        future::yield_now().await;
    }
}

impl World {
    pub(super) fn new() -> Arc<Self> {
        let settings = RedisSettings {
            prefix: String::new(),
            timeout: TIMEOUT,
            lease: LEASE,
            max_known: 4,
            max_unknown: 4,
            max_lookups: MAX_LOOKUPS,
            use_interval: TIMEOUT,
        };
        let state = LookupState::new(ENDPOINT.clone(), &settings, &mut Registry::default());
        let redis = Redis {
            changes: Vec::new(),
            session: None,
            events: VecDeque::new(),
        };
        Arc::new(Self {
            state,
            redis: Mutex::new(redis),
            invalidated: AtomicU64::new(0),
        })
    }

    pub(super) fn redis(&self) -> MutexGuard<'_, Redis> {
        self.redis.lock().unwrap()
    }

    /// Changes the token twice. A session gets an invalidation, which is behind no later response.
    pub(super) async fn change(&self) {
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
    pub(super) async fn supervise(&self) {
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
                self.invalidated
                    .fetch_max(version as u64, Ordering::Relaxed);
            }
        }
        while self.handle_event() {}
    }

    /// Sends the heartbeats that lookups need in the last session.
    pub(super) async fn keep_lease(&self) {
        loop {
            self.state.lease.needed().await;
            self.ping();
            while self.handle_event() {}
        }
    }

    pub(super) fn ping(&self) {
        let sent = Instant::now();
        scheduling_point();
        self.redis().events.push_back(Event::Pong { sent });
    }

    /// Handles an event in the order of the connection. Returns whether there was one.
    pub(super) fn handle_event(&self) -> bool {
        let event = self.redis().events.pop_front();
        match &event {
            Some(Event::Invalidation { version }) => {
                let name = Value::BulkString(self.state.keyspace.token(&DIGEST).into());
                self.state.invalidate(Some(&Value::Array(vec![name])));
                self.invalidated
                    .fetch_max(*version as u64, Ordering::Relaxed);
            }
            Some(Event::Pong { sent }) => self.state.lease.renew(*sent),
            None => {}
        }
        event.is_some()
    }

    /// Reads the token in Redis. The response of a session that was lost may never arrive.
    pub(super) async fn query(&self, session: u32) -> LookupOutcome {
        future::yield_now().await;
        let version = {
            let redis = self.redis();
            if redis.session == Some(session) {
                Some(redis.changes.len())
            } else {
                None
            }
        };
        pause().await;
        let lost = self.redis().session != Some(session);
        match version {
            Some(version) if !lost || chance(2) => Ok(record(version)),
            _ => pending().await,
        }
    }
}
