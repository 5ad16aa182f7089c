use std::rc::Rc;

use actix_http::Request;

use super::{connection::Connection, phase::Phase};

/// Finds the ends of the requests of a connection.
pub struct RequestFraming(Connection);

impl RequestFraming {
    /// Begins the first head of a connection.
    pub fn new() -> Self {
        Self(Connection::new(None, u64::MAX, Rc::default()))
    }

    /// Returns how many of these bytes belong to the current head or body.
    pub fn take(&self, bytes: &[u8]) -> usize {
        self.0.take(bytes)
    }

    /// Whether the current head or body is complete.
    pub fn is_complete(&self) -> bool {
        self.0.phase() == Phase::Responding
    }

    /// Begins the body of a request, if it has one.
    pub fn start_body(&self, request: &Request) {
        self.0.start_request(request);
    }

    /// Begins the next head.
    pub fn start_head(&self) {
        self.0.start_response(false);
    }
}

impl Default for RequestFraming {
    fn default() -> Self {
        Self::new()
    }
}
