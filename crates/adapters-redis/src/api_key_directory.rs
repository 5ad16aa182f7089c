use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{ApiKeyDirectory, ApiKeyDirectoryError, NotReady, Readiness},
};
use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{AbortHandle, JoinHandle},
    time::timeout,
};

use crate::{
    RedisEndpoint,
    cache::{Cache, LookingUp},
    layout::Layout,
    lease::Lease,
    look_up::{self, Answer, LookUpError},
    session,
};

/// API keys of Redis, found without a round trip once they have been found.
pub struct RedisApiKeyDirectory {
    shared: Arc<Shared>,
    /// Where look-ups go on when the request that began them has gone.
    runtime: Handle,
    timeout: Duration,
    session: AbortHandle,
}

/// How long to wait, how far to trust, and how much to remember.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// What every name in Redis begins with.
    pub prefix: String,
    /// For opening a connection, and for the answer to a look-up.
    pub timeout: Duration,
    /// How long after the last sign of life a cached answer counts.
    pub lease: Duration,
    /// The most tokens remembered that belong to a key.
    pub max_known: usize,
    /// The most tokens remembered that belong to none.
    pub max_unknown: usize,
    /// The most look-ups at a time.
    pub max_look_ups: usize,
}

/// What look-ups and the session have in common.
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    pub(crate) lease: Lease,
    pub(crate) layout: Layout,
    connection: RwLock<Option<MultiplexedConnection>>,
}

impl RedisApiKeyDirectory {
    /// Begins a session with Redis and keeps it up on the current runtime, as long as the directory lives. Returns
    /// after the first attempt, whatever came of it, or after twice the timeout.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(endpoint: RedisEndpoint, settings: RedisSettings) -> Self {
        let shared = Arc::new(Shared {
            cache: Arc::new(Cache::new(settings.max_known, settings.max_unknown, settings.max_look_ups)),
            lease: Lease::new(settings.lease),
            layout: Layout::new(&settings.prefix),
            connection: RwLock::default(),
        });
        let (sender, tried) = oneshot::channel();
        let session: JoinHandle<()> =
            tokio::spawn(session::keep(endpoint, settings.timeout, settings.lease, Arc::clone(&shared), sender));
        let directory =
            Self { shared, runtime: Handle::current(), timeout: settings.timeout, session: session.abort_handle() };
        // Where there is no session by then, look-ups say what is wrong.
        let _ = timeout(settings.timeout * 2, tried).await;
        directory
    }

    async fn look_up(&self, digest: ApiKeyDigest) -> Result<Answer, ApiKeyDirectoryError> {
        let mut outcome = match self.shared.cache.look_up(digest) {
            LookingUp::Joined(outcome) => outcome,
            LookingUp::Begun(announced, outcome) => {
                let shared = Arc::clone(&self.shared);
                self.runtime.spawn(async move {
                    let outcome = match shared.connection() {
                        Some(connection) => look_up::ask(connection, &shared.layout, &announced.digest).await,
                        None => Err(LookUpError::NotConnected),
                    };
                    announced.finish(outcome);
                });
                outcome
            }
            LookingUp::Overloaded => return Err(ApiKeyDirectoryError::Overloaded),
        };
        // Redis has its deadline; this one is for a runtime that is too busy to keep that, or ending.
        match timeout(self.timeout * 5 / 4, outcome.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => Ok(outcome.clone().unwrap_or(Err(LookUpError::NotConnected))?),
            Ok(Err(_)) => Err(LookUpError::NotConnected.into()),
            Err(_) => Err(ApiKeyDirectoryError::Timeout),
        }
    }
}

#[async_trait]
impl ApiKeyDirectory for RedisApiKeyDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, ApiKeyDirectoryError> {
        let now = Instant::now();
        let cached = if self.shared.lease.holds(now) { self.shared.cache.get(&digest, now) } else { None };
        let answer = match cached {
            Some(answer) => answer,
            None => self.look_up(digest).await?,
        };
        Ok(answer.key())
    }
}

/// Ready as long as Redis has answered lately.
#[async_trait]
impl Readiness for RedisApiKeyDirectory {
    async fn check(&self) -> Result<(), NotReady> {
        if self.shared.lease.holds(Instant::now()) { Ok(()) } else { Err(NotReady(LookUpError::NotConnected.into())) }
    }
}

impl Drop for RedisApiKeyDirectory {
    fn drop(&mut self) {
        self.session.abort();
    }
}

impl Shared {
    /// The token with this name was changed.
    pub(crate) fn forget(&self, name: &[u8]) {
        if let Some(digest) = self.layout.digest(name) {
            self.cache.forget(&digest);
        }
    }

    pub(crate) fn connection(&self) -> Option<MultiplexedConnection> {
        self.connection.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_connection(&self, connection: Option<MultiplexedConnection>) {
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = connection;
    }
}
