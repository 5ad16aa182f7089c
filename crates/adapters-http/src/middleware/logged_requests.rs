//! Selection of the requests that have a line in the log. It can change while requests are served.
//!
//! The decision precedes the formatting of a line and takes no lock: a request without a line costs an atomic load and,
//! if requests are sampled, a random number of its thread.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use actix_web::http::StatusCode;

/// Requests that have a line in the log. Those whose status is 400 or above always have one; this is the number of
/// others of which one has a line. 0: none has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedRequests(u32);

impl LoggedRequests {
    /// Every request.
    pub const ALL: Self = Self(1);
    /// Requests whose status is 400 or above.
    pub const ERRORS: Self = Self(0);
    /// Requests whose status is 400 or above, and one of 100 others, at random.
    pub const SAMPLED: Self = Self(100);

    /// Returns the number of requests for which the line of a request with this status stands. `None`: it has no line.
    pub(super) fn sample(self, status: StatusCode) -> Option<u32> {
        match self.0 {
            _ if status.as_u16() >= 400 => Some(1),
            0 => None,
            count => (count == 1 || fastrand::u32(..count) == 0).then_some(count),
        }
    }
}

/// The current [`LoggedRequests`]. Clones share it.
#[derive(Debug, Clone)]
pub struct RequestLogFilter(Arc<AtomicU32>);

impl RequestLogFilter {
    /// Creates a filter.
    pub fn new(logged: LoggedRequests) -> Self {
        Self(Arc::new(AtomicU32::new(logged.0)))
    }

    /// Returns the current selection.
    pub fn get(&self) -> LoggedRequests {
        LoggedRequests(self.0.load(Ordering::Relaxed))
    }

    /// Replaces the selection. It applies to every request that begins afterwards.
    pub fn set(&self, logged: LoggedRequests) {
        self.0.store(logged.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERRORS: [u16; 4] = [400, 404, 500, 503];
    const SUCCESSES: [u16; 4] = [101, 200, 201, 308];

    fn samples(logged: LoggedRequests, statuses: [u16; 4]) -> [Option<u32>; 4] {
        statuses.map(|status| logged.sample(StatusCode::from_u16(status).unwrap()))
    }

    #[test]
    fn an_error_always_has_a_line() {
        for logged in [LoggedRequests::ALL, LoggedRequests::ERRORS, LoggedRequests::SAMPLED] {
            assert_eq!(samples(logged, ERRORS), [Some(1); 4]);
        }
    }

    #[test]
    fn a_success_has_a_line_unless_only_errors_are_logged() {
        assert_eq!(samples(LoggedRequests::ALL, SUCCESSES), [Some(1); 4]);
        assert_eq!(samples(LoggedRequests::ERRORS, SUCCESSES), [None; 4]);
    }

    #[test]
    fn one_of_a_hundred_successes_is_sampled() {
        let samples = (0..100_000).filter_map(|_| LoggedRequests::SAMPLED.sample(StatusCode::OK));
        let samples: Vec<_> = samples.collect();
        // Six standard deviations.
        assert!((811..=1189).contains(&samples.len()), "{}", samples.len());
        assert!(samples.iter().all(|&sample| sample == 100));
    }

    #[test]
    fn clones_share_the_selection() {
        let filter = RequestLogFilter::new(LoggedRequests::ALL);
        filter.clone().set(LoggedRequests::ERRORS);
        assert_eq!(filter.get(), LoggedRequests::ERRORS);
    }
}
