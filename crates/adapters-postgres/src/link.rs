//! A connection that is opened again whenever it is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
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
};

/// The pauses between attempts grow from here…
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// …to here, and a random part of as much again is added.
pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(500);

/// What a connection is used for.
pub(crate) trait Session: Sized + Send + Sync + 'static {
    /// In the log: "connection for …".
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
    given_up: AtomicBool,
    giving_up: Notify,
}

/// How to open connections, and what was said about failing to.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) patience: Duration,
    pub(crate) outages: Arc<Outages>,
    /// Whether the schema is as it has to be: nothing is opened before.
    pub(crate) schema: watch::Receiver<bool>,
}

/// Has the log say once why there is no connection, however many are tried, and once that there is one again.
#[derive(Default)]
pub(crate) struct Outages(Mutex<Option<String>>);

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
            State::Open(open) if !open.given_up.load(Ordering::Relaxed) => Ok(Arc::clone(open)),
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
        Self { session, given_up: AtomicBool::new(false), giving_up: Notify::new() }
    }

    /// A deadline passed: what comes next on this connection would wait as well, so it is replaced.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.giving_up.notify_one();
    }
}

async fn keep<S: Session>(mut opener: Opener, settings: S::Settings, state: watch::Sender<State<S>>) {
    if !*opener.schema.borrow() {
        state.send_replace(State::Away);
        if opener.schema.wait_for(|&ready| ready).await.is_err() {
            return;
        }
    }
    let mut pauses = pauses();
    loop {
        let start = Instant::now();
        match opener.begin::<S>(&settings).await {
            Ok((session, driver)) => {
                opener.outages.over(&opener.endpoint);
                let reason = hold(session, driver, &state).await;
                tracing::warn!(address = %opener.endpoint, purpose = S::PURPOSE, reason, "a connection to PostgreSQL was lost");
            }
            Err(error) => {
                state.send_replace(State::Away);
                opener.outages.complain(&opener.endpoint, error.to_string());
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
        () = open.giving_up.notified() => "it was given up".to_owned(),
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
    async fn begin<S: Session>(&self, settings: &S::Settings) -> Result<(S, Driver), ConnectionError> {
        let Opened { client, driver } = self.endpoint.connect(self.patience).await?;
        let begun = timeout(self.patience, S::begin(client, settings)).await;
        Ok((begun.unwrap_or(Err(ConnectionError::Silent))?, driver))
    }
}

impl Outages {
    pub(crate) fn complain(&self, endpoint: &PgEndpoint, reason: String) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() != Some(&reason) {
            tracing::error!(address = %endpoint, reason, "no connection to PostgreSQL: requests are answered 503");
            *last = Some(reason);
        }
    }

    fn over(&self, endpoint: &PgEndpoint) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!(address = %endpoint, "connected to PostgreSQL again");
        }
    }
}
