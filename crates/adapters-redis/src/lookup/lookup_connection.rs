//! The connection for lookups, which each session replaces.
//!
//! A short interruption delays lookups and does not fail them: a lookup without a session waits for the next one, until
//! a fixed time after the end of the last session. If Redis is unavailable for longer, lookups fail at once. A lookup
//! responds with what Redis returned during the session in which it was sent: if that session ends first, the lookup is
//! sent again in the next one.

use std::time::Duration;

use tokio::{select, sync::watch};

use super::query::{LookupError, LookupOutcome};
use crate::{
    concurrency::time::{Instant, timeout, timeout_at},
    connection::Connection,
};

pub(crate) struct LookupConnection<C = Connection>(watch::Sender<State<C>>);

#[derive(Clone)]
enum State<C> {
    InSession(C),
    /// There is no session. Lookups wait for one until this moment.
    NoSession(Instant),
}

impl<C: Clone + Send + Sync> LookupConnection<C> {
    /// Creates the state before the first session: lookups fail at once.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(State::NoSession(Instant::now())))
    }

    pub(crate) fn begin_session(&self, connection: C) {
        self.0.send_replace(State::InSession(connection));
    }

    /// For this long, lookups wait for the next session.
    pub(crate) fn end_session(&self, wait: Duration) {
        self.0.send_replace(State::NoSession(Instant::now() + wait));
    }

    /// Runs a lookup. The timeout includes the time for which it waits for a session.
    pub(crate) async fn run<F>(&self, limit: Duration, send: impl Fn(C) -> F) -> LookupOutcome
    where
        F: Future<Output = LookupOutcome>,
    {
        timeout(limit, self.run_in_session(send)).await.unwrap_or(Err(LookupError::Timeout))
    }

    async fn run_in_session<F>(&self, send: impl Fn(C) -> F) -> LookupOutcome
    where
        F: Future<Output = LookupOutcome>,
    {
        let mut states = self.0.subscribe();
        loop {
            let connection = next_connection(&mut states).await?;
            select! {
                biased;
                _ = states.changed() => {}
                outcome = send(connection) => match outcome {
                    // The session ends as well.
                    Err(error) if error.is_disconnection() => _ = states.changed().await,
                    outcome => return outcome,
                },
            }
        }
    }
}

/// Returns the connection of the session, or of the next session if it begins in time.
async fn next_connection<C: Clone + Send + Sync>(states: &mut watch::Receiver<State<C>>) -> Result<C, LookupError> {
    let wait_until = match &*states.borrow_and_update() {
        State::InSession(connection) => return Ok(connection.clone()),
        State::NoSession(wait_until) => *wait_until,
    };
    let in_session = states.wait_for(|state| matches!(state, State::InSession(_)));
    match timeout_at(wait_until, in_session).await.map(|state| state.map(|state| state.clone())) {
        Ok(Ok(State::InSession(connection))) => Ok(connection),
        _ => Err(LookupError::NotConnected),
    }
}
