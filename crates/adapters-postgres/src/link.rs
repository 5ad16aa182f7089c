//! A connection that is opened again whenever it is lost.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Client;

use crate::{
    PgEndpoint,
    endpoint::{Driver, Opened},
    error::{ConnectionError, NotConnected},
    outage::{Outage, Outages},
};

/// The pauses between attempts grow from here…
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// …to here, and a random part of as much again is added.
pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(500);

/// What a connection is used for.
pub(crate) trait Session: Sized + Send + Sync + 'static {
    /// In the log: what the connection is for.
    const PURPOSE: &'static str;

    /// What it takes to begin one.
    type Settings: Clone + Send + Sync + 'static;

    /// Begins on a connection that has just been opened.
    fn begin(client: Client, settings: &Self::Settings) -> impl Future<Output = Result<Self, ConnectionError>> + Send;
}

/// Keeps one session up on the runtime it was made on, as long as it lives.
pub(crate) struct Link<S> {
    state: watch::Receiver<State<S>>,
    keeper: AbortHandle,
}

enum State<S> {
    /// The first attempt is under way.
    Opening,
    Open(Arc<Open<S>>),
    Away,
}

/// A session that is up, or was a moment ago.
pub(crate) struct Open<S> {
    pub(crate) session: S,
    /// Why it is not to be used any more.
    given_up: OnceLock<&'static str>,
    giving_up: Notify,
}

/// How to open connections, and what was said about failing to.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) patience: Duration,
    pub(crate) outages: Arc<Outages>,
    /// What is to be set on each connection before anything else.
    pub(crate) set_up: Option<String>,
    /// Whether the schema is as it has to be: nothing is opened before.
    pub(crate) schema: watch::Receiver<bool>,
}

impl<S: Session> Link<S> {
    /// Begins to keep a session up.
    pub(crate) fn new(opener: Opener, settings: S::Settings) -> Self {
        let (sender, state) = watch::channel(State::Opening);
        let keeper = tokio::spawn(keep(opener, settings, sender)).abort_handle();
        Self { state, keeper }
    }

    /// The session, if it is up. Only the very first attempt is waited for.
    pub(crate) async fn session(&self) -> Result<Arc<Open<S>>, NotConnected> {
        if matches!(*self.state.borrow(), State::Opening) {
            // Where the keeper has ended, so has the runtime.
            let _ = self.state.clone().wait_for(|state| !matches!(state, State::Opening)).await;
        }
        self.now()
    }

    /// The session, if it is up.
    pub(crate) fn now(&self) -> Result<Arc<Open<S>>, NotConnected> {
        match &*self.state.borrow() {
            State::Open(open) if !open.is_given_up() => Ok(Arc::clone(open)),
            _ => Err(NotConnected),
        }
    }
}

impl<S> Drop for Link<S> {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl<S> Open<S> {
    pub(crate) fn new(session: S) -> Self {
        Self { session, given_up: OnceLock::new(), giving_up: Notify::new() }
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.get().is_some()
    }

    /// Nothing good comes of this connection any more: it is replaced.
    pub(crate) fn give_up(&self, reason: &'static str) {
        // The first reason is the one.
        let _ = self.given_up.set(reason);
        self.giving_up.notify_one();
    }
}

/// Why a connection that was not in time is given up: what comes next on it would wait as well.
pub(crate) const LATE: &str = "it did not answer in time";

/// Why a connection to a server that cannot be written is given up: after a fail-over, another one can.
pub(crate) const READ_ONLY: &str = "it leads to a server that is read-only";

async fn keep<S: Session>(mut opener: Opener, settings: S::Settings, state: watch::Sender<State<S>>) {
    if !*opener.schema.borrow() {
        state.send_replace(State::Away);
        if opener.schema.wait_for(|&ready| ready).await.is_err() {
            return;
        }
    }
    let mut pauses = pauses();
    let mut outage = Outage::new(&opener.outages);
    loop {
        let start = Instant::now();
        match opener.begin::<S>(&settings).await {
            Ok((session, driver)) => {
                outage.ends(&opener.endpoint);
                let reason = hold(session, driver, &state).await;
                tracing::warn!(address = %opener.endpoint, purpose = S::PURPOSE, reason, "a connection to PostgreSQL was lost");
            }
            Err(error) => {
                state.send_replace(State::Away);
                outage.goes_on(&opener.endpoint, error.to_string());
            }
        }
        if start.elapsed() > MAX_PAUSE + opener.patience {
            pauses = self::pauses();
        }
        sleep(pauses.next().unwrap_or(MAX_PAUSE)).await;
    }
}

/// Offers the session until its connection ends or is given up; says why it did.
async fn hold<S: Session>(session: S, mut driver: Driver, state: &watch::Sender<State<S>>) -> String {
    let open = Arc::new(Open::new(session));
    state.send_replace(State::Open(Arc::clone(&open)));
    let reason = tokio::select! {
        error = driver.ended() => error.to_string(),
        () = open.giving_up.notified() => open.given_up.get().copied().unwrap_or(LATE).to_owned(),
    };
    state.send_replace(State::Away);
    reason
}

pub(crate) fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(MIN_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .without_max_times()
        .with_jitter()
        .build()
}

impl Opener {
    /// Opens a connection and begins a session on it.
    pub(crate) async fn begin<S: Session>(&self, settings: &S::Settings) -> Result<(S, Driver), ConnectionError> {
        let Opened { client, driver } = self.endpoint.connect(self.patience).await?;
        let beginning = async {
            if let Some(set_up) = &self.set_up {
                client.batch_execute(set_up).await?;
            }
            S::begin(client, settings).await
        };
        let session = timeout(self.patience, beginning).await;
        Ok((session.unwrap_or(Err(ConnectionError::Silent))?, driver))
    }
}
