//! What the log says of connections that cannot be had: each reason once, however many are tried and however often.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::PgEndpoint;

/// What all connections of the process have in common.
#[derive(Default)]
pub(crate) struct Outages(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many connections are missing.
    missing: usize,
    /// What was said about that.
    reasons: BTreeSet<String>,
}

/// What one connection has to do with it.
pub(crate) struct Outage {
    outages: Arc<Outages>,
    missing: bool,
}

impl Outage {
    pub(crate) fn new(outages: &Arc<Outages>) -> Self {
        Self { outages: Arc::clone(outages), missing: false }
    }

    /// The connection cannot be had, for this reason.
    pub(crate) fn goes_on(&mut self, endpoint: &PgEndpoint, reason: String) {
        let mut state = self.outages.lock();
        state.missing += usize::from(!self.missing);
        self.missing = true;
        if !state.reasons.contains(&reason) {
            complain(endpoint, &reason);
            state.reasons.insert(reason);
        }
    }

    /// The connection is there.
    pub(crate) fn ends(&mut self, endpoint: &PgEndpoint) {
        let mut state = self.outages.lock();
        state.missing -= usize::from(self.missing);
        self.missing = false;
        if state.missing == 0 && !std::mem::take(&mut state.reasons).is_empty() {
            tracing::info!(address = %endpoint, "connected to PostgreSQL again");
        }
    }
}

pub(crate) fn complain(endpoint: &PgEndpoint, reason: &str) {
    tracing::error!(address = %endpoint, reason, "no connection to PostgreSQL: requests are answered 503");
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.outages.lock().missing -= usize::from(self.missing);
    }
}

impl Outages {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
