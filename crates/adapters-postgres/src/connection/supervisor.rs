use std::sync::Arc;

use tokio::{
    sync::{SetOnce, watch},
    task::AbortHandle,
    time::{Instant, sleep},
};

use super::{
    endpoint::ConnectionTask,
    retry::{MAX_PAUSE, Outage},
    session::{ConnectionSettings, Session},
};
use crate::{
    error::NotConnected,
    metrics::{ConnectionMetrics, Counted},
};

/// Reason to replace a connection that does not respond: later responses would be delayed as well.
pub(crate) const NO_RESPONSE: &str = "the server did not respond in time";

/// Reason to replace a connection to a read-only server: after a fail-over, another server accepts writes.
pub(crate) const READ_ONLY: &str = "the server is read-only";

/// Keeps one session up, on the runtime that it was created on, until it is dropped.
pub(crate) struct Supervisor<S> {
    state: watch::Receiver<State<S>>,
    task: AbortHandle,
}

enum State<S> {
    /// The first attempt is in flight.
    Connecting,
    Connected(Arc<Connection<S>>),
    Unavailable,
}

pub(crate) struct Connection<S> {
    pub(crate) session: S,
    broken: SetOnce<&'static str>,
}

/// Publishes the state, and counts the connection in it.
struct StateSender<S> {
    sender: watch::Sender<State<S>>,
    counted: Counted,
    metrics: ConnectionMetrics,
}

impl<S: Session> Supervisor<S> {
    /// Starts the supervision of a session. The log names the purpose.
    pub(crate) fn new(settings: ConnectionSettings, purpose: &'static str, metrics: &ConnectionMetrics) -> Self {
        let (sender, state) = watch::channel(State::Connecting);
        let counted = Counted::new(&metrics.connecting);
        let sender = StateSender { sender, counted, metrics: metrics.clone() };
        let task = tokio::spawn(supervise(settings, purpose, sender)).abort_handle();
        Self { state, task }
    }

    /// Returns the connection if it is up. Waits for the first attempt, but not for a later one.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection<S>>, NotConnected> {
        if matches!(*self.state.borrow(), State::Connecting) {
            // If the task has ended, the runtime has ended as well.
            let _ = self.state.clone().wait_for(|state| !matches!(state, State::Connecting)).await;
        }
        self.connection_now()
    }

    pub(crate) fn connection_now(&self) -> Result<Arc<Connection<S>>, NotConnected> {
        match &*self.state.borrow() {
            State::Connected(connection) if !connection.is_broken() => Ok(Arc::clone(connection)),
            _ => Err(NotConnected),
        }
    }
}

#[cfg(all(test, shuttle))]
impl<S> Supervisor<S> {
    /// Creates a supervisor that never replaces this session. The task does nothing.
    pub(super) fn connected(session: S, task: AbortHandle) -> Self {
        let connection = Connection { session, broken: SetOnce::new() };
        Self { state: watch::channel(State::Connected(Arc::new(connection))).1, task }
    }
}

impl<S> Drop for Supervisor<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S> Connection<S> {
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.initialized()
    }

    /// Marks the connection as broken; the supervisor replaces it. Only the first reason is logged.
    pub(crate) fn mark_broken(&self, reason: &'static str) {
        let _ = self.broken.set(reason);
    }
}

impl<S> StateSender<S> {
    fn send(&mut self, state: State<S>) {
        self.counted = Counted::new(match state {
            State::Connecting => &self.metrics.connecting,
            State::Connected(_) => &self.metrics.connected,
            State::Unavailable => &self.metrics.unavailable,
        });
        self.sender.send_replace(state);
    }
}

async fn supervise<S: Session>(mut settings: ConnectionSettings, purpose: &'static str, mut state: StateSender<S>) {
    if !*settings.schema_ready.borrow() {
        state.send(State::Unavailable);
        if settings.schema_ready.wait_for(|&ready| ready).await.is_err() {
            return;
        }
    }
    let address = &settings.endpoint;
    let mut outage = Outage::new(&settings.outages);
    let mut is_replacement = false;
    loop {
        let start = Instant::now();
        match settings.open::<S>().await {
            Ok((session, task)) => {
                if outage.succeeded() {
                    tracing::info!(%address, "connected to PostgreSQL again");
                }
                state.metrics.reconnects.inc_by(is_replacement.into());
                is_replacement = true;
                let reason = offer(session, task, &mut state).await;
                tracing::warn!(%address, purpose, reason, "a connection to PostgreSQL was lost");
            }
            Err(error) => {
                state.send(State::Unavailable);
                outage.failed(error.to_string(), |reason| address.log_unavailable(reason));
            }
        }
        if start.elapsed() > MAX_PAUSE + settings.postgres.connect_timeout {
            outage.reset_backoff();
        }
        sleep(outage.next_pause()).await;
    }
}

/// Offers the session until its connection ends or is marked as broken. Returns the reason.
async fn offer<S: Session>(session: S, mut task: ConnectionTask, state: &mut StateSender<S>) -> String {
    let connection = Arc::new(Connection { session, broken: SetOnce::new() });
    state.send(State::Connected(Arc::clone(&connection)));
    let reason = tokio::select! {
        error = task.ended() => error.to_string(),
        reason = connection.broken.wait() => (*reason).to_owned(),
    };
    state.send(State::Unavailable);
    reason
}
