use std::time::Duration;

use tokio::time::Instant;

/// Pause after a new session refused the same batch: then the error is not about the session.
const PAUSE: Duration = Duration::from_secs(1);

/// Decides whether a session that refuses a batch is replaced. An error that recurs in the new session costs a
/// connection per second.
#[derive(Debug, Default)]
pub(super) enum Replacement {
    #[default]
    Allowed,
    /// A new session executes the batch again.
    InProgress,
    InVain(Instant),
}

impl Replacement {
    /// Returns whether a session that has refused a batch is replaced now.
    pub(super) fn begin(&mut self) -> bool {
        match self {
            Self::Allowed => *self = Self::InProgress,
            Self::InProgress => self.stop(),
            Self::InVain(since) if since.elapsed() >= PAUSE => *self = Self::InProgress,
            Self::InVain(_) => {}
        }
        matches!(self, Self::InProgress)
    }

    /// Records that a new session reports the same.
    pub(super) fn stop(&mut self) {
        *self = Self::InVain(Instant::now());
    }

    /// Records that a batch was executed.
    pub(super) fn end(&mut self) {
        if matches!(self, Self::InProgress) {
            *self = Self::Allowed;
        }
    }
}
