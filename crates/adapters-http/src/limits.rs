use std::time::Duration;

/// Limits and timeouts of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Number of worker threads.
    pub workers: usize,
    /// Maximum number of open connections. Beyond it, the one that has had no request for the longest time is closed;
    /// if there is none, further connections wait.
    pub max_connections: usize,
    /// Maximum number of bytes that response bodies hold while they are sent. Beyond it, the connection that has been
    /// sending for the longest time is closed.
    pub max_unsent_bytes: usize,
    /// Maximum number of requests in flight. Others are rejected with 503.
    pub max_in_flight: usize,
    /// Maximum number of requests of one API key, those that wait for their body included. Each worker has an equal
    /// share, at least 1. Others are rejected with 503.
    pub max_in_flight_per_key: usize,
    /// Maximum size of a request body.
    pub max_body_bytes: usize,
    /// Timeout for the head of a connection's first request.
    pub head_timeout: Duration,
    /// Timeout for the body of a request.
    pub body_timeout: Duration,
    /// Timeout of an idle connection.
    pub keep_alive: Duration,
    /// Timeout for everything else: a connection is closed this long after the last byte that was written to it.
    pub answer_timeout: Duration,
}

/// Maximum number of accepted connections of a worker that wait until others are closed.
pub(crate) const MAX_WAITING: usize = 64;

pub(crate) const MANAGEMENT_CONNECTIONS: usize = 100;

impl Limits {
    /// Returns the maximum number of client connections of both servers, those that wait included.
    pub fn sockets(&self) -> usize {
        self.max_connections + MANAGEMENT_CONNECTIONS + (self.workers + 1) * MAX_WAITING
    }

    /// Returns the number of workers that run: each has an equal share of the connections, and at least one.
    pub(crate) fn running_workers(&self) -> usize {
        self.workers.min(self.max_connections)
    }

    pub(crate) fn max_in_flight_per_key_and_worker(&self) -> usize {
        (self.max_in_flight_per_key / self.running_workers()).max(1)
    }
}
