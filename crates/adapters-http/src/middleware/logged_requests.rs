//! Selection of the requests that have a line in the log. It can change while requests are served.
//!
//! The decision precedes the formatting of a line and takes no lock: a request without a line costs an atomic load.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use actix_web::http::StatusCode;

/// Requests that have a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedRequests {
    /// Every request.
    All,
    /// Requests whose status is 400 or above.
    Errors,
}

impl LoggedRequests {
    /// Returns whether a request with this status has a line.
    pub(super) fn contains(self, status: StatusCode) -> bool {
        self == Self::All || status.as_u16() >= 400
    }
}

/// The current [`LoggedRequests`]: at first, all. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct RequestLogFilter {
    errors_only: Arc<AtomicBool>,
}

impl RequestLogFilter {
    /// Creates a filter.
    pub fn new(logged: LoggedRequests) -> Self {
        let filter = Self::default();
        filter.set(logged);
        filter
    }

    /// Returns the current selection.
    pub fn get(&self) -> LoggedRequests {
        if self.errors_only.load(Ordering::Relaxed) { LoggedRequests::Errors } else { LoggedRequests::All }
    }

    /// Replaces the selection. It applies to every request that begins afterwards.
    pub fn set(&self, logged: LoggedRequests) {
        self.errors_only.store(logged == LoggedRequests::Errors, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_always_has_a_line_and_a_success_unless_only_errors_are_logged() {
        for (status, among_errors) in [(101, false), (200, false), (308, false), (400, true), (404, true), (503, true)]
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(LoggedRequests::All.contains(status));
            assert_eq!(LoggedRequests::Errors.contains(status), among_errors, "{status}");
        }
    }

    #[test]
    fn clones_share_the_selection() {
        let filter = RequestLogFilter::new(LoggedRequests::All);
        filter.clone().set(LoggedRequests::Errors);
        assert_eq!(filter.get(), LoggedRequests::Errors);
    }
}
