//! A session with Redis: one connection for lookups, and one on which Redis sends an invalidation for each change of a
//! token (`CLIENT TRACKING ON BCAST`). A session that loses either connection ends, and a new one begins.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use animal_store_adapter_kit::Outage;
use animal_store_app::ApiKeyDigest;
use redis::{AsyncTypedCommands, Cmd, PushInfo, PushKind, RedisResult, cmd};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::state::LookupState;
use crate::{
    concurrency::Instant,
    connection::{Connection, RedisEndpoint, check_role},
    keyspace::{self, Keyspace, RedisFailure},
    token,
};

/// Time between two requests to the Sentinels during a session.
const MASTER_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time between two heartbeats of a session without lookups: a connection that freezes is noticed all the same,
/// and no timeout for idle connections ends it.
const MAX_IDLE: Duration = Duration::from_secs(5);

struct Session {
    /// The server of both connections.
    server: RedisEndpoint,
    invalidations: Connection,
    lookups: Connection,
    /// Notified when either connection is closed.
    closed: Arc<Notify>,
    state: Arc<LookupState>,
}

/// Keeps a session up: retries until a session opens, and opens a new one when it ends.
pub(crate) async fn supervise(lease: Duration, state: Arc<LookupState>) {
    let mut outage = Outage::default();
    loop {
        let start = Instant::now();
        let opened = Session::open(Arc::clone(&state)).await;
        if let Ok(Session { server, .. }) = &opened {
            tracing::info!(address = %server, "connected to Redis: API keys can be looked up");
            outage.succeeded();
            state.metrics.connected.set(1);
        }
        state.attempted.notify_one();
        let failure = match opened {
            Ok(session) => {
                let failure = session.run(lease).await;
                state.end_session();
                state.metrics.connected.set(0);
                failure
            }
            Err(failure) => failure,
        };
        outage.failed(state.keyspace.describe(&failure), |reason| {
            tracing::error!(address = %state.keyspace.endpoint, reason, "no connection to Redis: requests get 503");
        });
        sleep(outage.next_pause(start.elapsed(), state.keyspace.timeout)).await;
    }
}

/// Returns the command after which Redis sends an invalidation for each change of a token.
pub(crate) fn tracking_command(keyspace: &Keyspace) -> Cmd {
    let mut tracking = cmd("CLIENT");
    tracking
        .arg("TRACKING")
        .arg("ON")
        .arg("BCAST")
        .arg("PREFIX")
        .arg(&keyspace.tokens);
    tracking
}

/// Returns the master that Sentinels name when it is another one than this server, which may respond all the same.
async fn other_master(keyspace: &Keyspace, server: &RedisEndpoint) -> RedisEndpoint {
    loop {
        sleep(MASTER_INTERVAL).await;
        // Without their response, the session continues: docs/operations/redis.md says what that costs in a partition.
        if let Ok(master) = keyspace.endpoint.master(keyspace.timeout).await
            && master.to_string() != server.to_string()
        {
            return master;
        }
    }
}

impl Session {
    async fn open(state: Arc<LookupState>) -> keyspace::Result<Self> {
        let closed = Arc::new(Notify::new());
        // Called while a connection is read: an invalidation is applied before any response behind it is returned.
        let on_push = {
            let closed = Arc::clone(&closed);
            let state = Arc::clone(&state);
            move |push: PushInfo| match push.kind {
                PushKind::Disconnection => closed.notify_one(),
                PushKind::Invalidate => state.invalidate(push.data.first()),
                _ => {}
            }
        };
        let Keyspace {
            endpoint, timeout, ..
        } = &state.keyspace;
        // One server for both connections, also while Sentinels replace the master.
        let server = endpoint.master(*timeout).await;
        let server = server.map_err(RedisFailure::Unavailable)?;
        let connect = async || {
            let opened = server.connect(*timeout, on_push.clone()).await;
            opened.map_err(RedisFailure::Unavailable)
        };
        let mut invalidations = connect().await?;
        let lookups = connect().await?;
        tracking_command(&state.keyspace)
            .exec_async(&mut invalidations)
            .await?;
        // Tests the commands of a lookup, with a token that does not exist.
        let unknown = state.keyspace.token(&ApiKeyDigest([0; 32]));
        token::find(lookups.clone(), &unknown).await?;
        let session = Self {
            server,
            invalidations,
            lookups,
            closed,
            state,
        };
        session.log_missing_index().await?;
        session.heartbeat().await?;
        session.state.begin_session(session.lookups.clone());
        Ok(session)
    }

    /// Renews the lease until a connection fails.
    async fn run(&self, lease: Duration) -> RedisFailure {
        let server = &self.server;
        tokio::select! {
            () = self.closed.notified() => RedisFailure::Unavailable(format!("Redis at {server} closed the connection")),
            other = other_master(&self.state.keyspace, server) => {
                RedisFailure::Unavailable(format!("the Sentinels have replaced the master {server} by {other}"))
            }
            Err(error) = self.keep_lease(lease) => error,
        }
    }

    async fn keep_lease(&self, lease: Duration) -> keyspace::Result<Infallible> {
        loop {
            sleep(self.state.lease.until_half(Instant::now())).await;
            let _ = timeout(MAX_IDLE, self.state.lease.needed()).await;
            timeout(lease / 2, self.heartbeat())
                .await
                .map_err(|_| RedisFailure::Timeout)??;
            if self.state.flushed.swap(false, Ordering::Relaxed) {
                self.log_missing_index().await?;
            }
        }
    }

    /// Renews the lease if both connections respond, and their server is still the master.
    async fn heartbeat(&self) -> RedisResult<()> {
        let sent = Instant::now();
        tokio::try_join!(
            check_role(self.invalidations.clone()),
            check_role(self.lookups.clone())
        )?;
        self.state.lease.renew(sent);
        Ok(())
    }

    async fn log_missing_index(&self) -> RedisResult<()> {
        let index = &self.state.keyspace.index;
        if !self.lookups.clone().exists(index).await? {
            tracing::error!(
                index,
                "Redis holds no index of API keys: it is new or has lost its data; unknown keys get 401; to create a \
                 key: animal-store keys create --label NAME"
            );
        }
        Ok(())
    }
}
