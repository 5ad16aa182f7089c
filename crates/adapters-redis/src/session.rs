//! The session with Redis: two connections that live and die together.
//!
//! One carries look-ups; on the other one Redis reports every change of a token (`CLIENT TRACKING ON BCAST`). Both
//! are asked for a sign of life several times in a lease.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use animal_store_app::ApiKeyDigest;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use redis::{PushInfo, PushKind, RedisError, RedisResult, Value, aio::MultiplexedConnection, cmd};
use thiserror::Error;
use tokio::{
    sync::{Notify, oneshot},
    time::{sleep, timeout},
};

use crate::{
    RedisEndpoint,
    api_key_directory::Shared,
    look_up::{self, LookUpError},
};

/// The pauses between attempts grow from here…
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// …to here, and a random part of as much again is added.
const MAX_PAUSE: Duration = Duration::from_millis(500);

struct Session {
    changes: MultiplexedConnection,
    look_ups: MultiplexedConnection,
    signals: Arc<Signals>,
    /// When the last sign of life was asked for.
    asked: Instant,
}

/// What the connections say without being asked.
#[derive(Default)]
struct Signals {
    closed: Notify,
    flushed: AtomicBool,
}

#[derive(Debug, Error)]
enum SessionError {
    #[error("{0}")]
    Redis(#[from] RedisError),
    #[error(transparent)]
    LookUp(#[from] LookUpError),
    #[error("the connection was closed")]
    Closed,
    #[error("there was no answer in time")]
    Silent,
}

/// Keeps a session up for ever. Sends word when the first attempt has been made.
pub(crate) async fn keep(
    endpoint: RedisEndpoint,
    patience: Duration,
    lease: Duration,
    shared: Arc<Shared>,
    tried: oneshot::Sender<()>,
) {
    let mut tried = Some(tried);
    let mut pauses = pauses();
    let mut last_complaint = String::new();
    loop {
        let start = Instant::now();
        let opened = Session::open(&endpoint, patience, &shared).await;
        let error = match opened {
            Ok(session) => {
                tracing::info!(address = %endpoint, "connected to Redis: API keys can be looked up");
                last_complaint.clear();
                tell(&mut tried);
                let error = session.watch(lease, &shared).await;
                shared.lease.end();
                shared.set_connection(None);
                error
            }
            Err(error) => error,
        };
        tell(&mut tried);
        complain(&endpoint, error.to_string(), &mut last_complaint);
        if start.elapsed() > MAX_PAUSE + patience {
            pauses = self::pauses();
        }
        sleep(pauses.next().unwrap_or(MAX_PAUSE)).await;
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(MIN_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .without_max_times()
        .with_jitter()
        .build()
}

fn tell(tried: &mut Option<oneshot::Sender<()>>) {
    if let Some(tried) = tried.take() {
        // Whoever waited may have gone.
        let _ = tried.send(());
    }
}

/// Once for each new reason, however often it is tried.
fn complain(endpoint: &RedisEndpoint, reason: String, last: &mut String) {
    if reason != *last {
        tracing::error!(address = %endpoint, reason, "no connection to Redis: requests are answered 503");
        *last = reason;
    }
}

impl Session {
    async fn open(endpoint: &RedisEndpoint, patience: Duration, shared: &Arc<Shared>) -> Result<Self, SessionError> {
        let signals = Arc::new(Signals::default());
        let on_push = {
            let (signals, shared) = (Arc::clone(&signals), Arc::clone(shared));
            move |push: PushInfo| signals.take(&push, &shared)
        };
        let mut session = Self {
            changes: endpoint.connect(patience, on_push.clone()).await?,
            look_ups: endpoint.connect(patience, on_push).await?,
            signals,
            asked: Instant::now(),
        };
        session.track(&shared.layout.tokens).await?;
        // What was read before this moment may have been changed unseen.
        shared.cache.clear();
        // The question that requests depend on, of a token that nobody has.
        let nobody = ApiKeyDigest::from_bytes([0; 32]);
        look_up::ask(session.look_ups.clone(), &shared.layout, &nobody).await?;
        session.complain_if_empty(&shared.layout.index).await?;
        session.asked = Instant::now();
        session.ask_for_life().await?;
        shared.lease.renew(session.asked);
        shared.set_connection(Some(session.look_ups.clone()));
        Ok(session)
    }

    async fn track(&mut self, prefix: &str) -> RedisResult<()> {
        let mut command = cmd("CLIENT");
        command.arg("TRACKING").arg("ON").arg("BCAST").arg("PREFIX").arg(prefix);
        command.exec_async(&mut self.changes).await
    }

    /// Renews the lease until a connection fails.
    async fn watch(mut self, lease: Duration, shared: &Shared) -> SessionError {
        let signals = Arc::clone(&self.signals);
        tokio::select! {
            () = signals.closed.notified() => SessionError::Closed,
            error = self.renew(lease, shared) => error,
        }
    }

    async fn renew(&mut self, lease: Duration, shared: &Shared) -> SessionError {
        loop {
            // Counted from the question: however slow its answer was, the next one comes before the lease is over.
            sleep((lease / 2).saturating_sub(self.asked.elapsed())).await;
            self.asked = Instant::now();
            match timeout(lease / 2, self.ask_for_life()).await {
                Ok(Ok(())) => shared.lease.renew(self.asked),
                Ok(Err(error)) => return error.into(),
                Err(_) => return SessionError::Silent,
            }
            if self.signals.flushed.swap(false, Ordering::Relaxed)
                && let Err(error) = self.complain_if_empty(&shared.layout.index).await
            {
                return error.into();
            }
        }
    }

    async fn ask_for_life(&mut self) -> RedisResult<()> {
        let ping = cmd("PING");
        tokio::try_join!(ping.exec_async(&mut self.changes), ping.exec_async(&mut self.look_ups)).map(drop)
    }

    async fn complain_if_empty(&mut self, index: &str) -> RedisResult<()> {
        let filled: bool = cmd("EXISTS").arg(index).query_async(&mut self.look_ups).await?;
        if !filled {
            tracing::error!(
                index,
                "Redis holds no index of API keys: it is new, or has lost them; keys that it does not have are answered 401"
            );
        }
        Ok(())
    }
}

impl Signals {
    /// Called as the connection is read: a change has been taken up before an answer behind it is.
    fn take(&self, push: &PushInfo, shared: &Shared) {
        match (&push.kind, push.data.first()) {
            (PushKind::Disconnection, _) => self.closed.notify_one(),
            (PushKind::Invalidate, Some(Value::Array(names))) => {
                for name in names {
                    match name {
                        Value::BulkString(name) => shared.forget(name),
                        _ => shared.cache.clear(),
                    }
                }
            }
            (PushKind::Invalidate, _) => {
                shared.cache.clear();
                self.flushed.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}
