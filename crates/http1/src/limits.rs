//! Limits and timeouts of the connections of a server.

use std::time::Duration;

/// Limits and timeouts of the connections of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Number of worker threads.
    pub workers: usize,
    /// Maximum number of open connections. Beyond it, the one that has had no request for the longest time is closed;
    /// if there is none, further connections wait until a client makes no progress with its response.
    pub max_connections: usize,
    /// Maximum number of bytes that response bodies hold while they are sent. Beyond it, the connection that has been
    /// sending for the longest time is closed.
    pub max_unsent_bytes: usize,
    /// Maximum size of a request body.
    pub max_body_bytes: usize,
    /// Timeout of a TLS handshake.
    pub handshake_timeout: Duration,
    /// Timeout for a head.
    pub head_timeout: Duration,
    /// Timeout for the body of a request.
    pub body_timeout: Duration,
    /// Timeout of an idle connection.
    pub keep_alive: Duration,
    /// Timeout of a request in the application, and of a response: each part of it that the client takes starts the
    /// timeout again.
    pub response_timeout: Duration,
}

/// Maximum number of accepted connections of a worker that wait until others are closed. It is at most the number of
/// those that are served.
const MAX_WAITING: usize = 64;

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            workers: 1,
            max_connections: 10_000,
            max_unsent_bytes: 64 * 1024 * 1024,
            max_body_bytes: 16 * 1024,
            handshake_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            response_timeout: Duration::from_mins(2),
        }
    }
}

impl ConnectionLimits {
    /// Returns the maximum number of sockets of clients, those that wait included.
    pub fn sockets(&self) -> usize {
        // A worker holds one more, which waits for a slot.
        self.running_workers()
            * (self.connections_per_worker() + self.queued_connections_per_worker() + 1)
    }

    /// Lowers `max_connections` so that [`sockets`](Self::sockets) is at most `max`. Returns whether that is possible:
    /// each worker serves at least one connection.
    pub fn reduce_sockets(&mut self, max: usize) -> bool {
        let workers = self.running_workers();
        let share = (max / workers).saturating_sub(1);
        // The inverse of `queued_connections_per_worker`.
        let served = share.saturating_sub(MAX_WAITING).max(share / 2);
        self.max_connections = self.max_connections.min(served * workers);
        served > 0
    }

    /// Returns the number of workers that run: each has an equal share of the connections, and at least one.
    pub fn running_workers(&self) -> usize {
        self.workers.min(self.max_connections)
    }

    /// Returns the maximum number of connections that are served at the same time.
    pub(crate) fn served_connections(&self) -> usize {
        self.connections_per_worker() * self.running_workers()
    }

    pub(crate) fn connections_per_worker(&self) -> usize {
        self.max_connections / self.running_workers()
    }

    pub(crate) fn queued_connections_per_worker(&self) -> usize {
        self.connections_per_worker().min(MAX_WAITING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_limits_need_at_most_the_given_number_of_sockets() {
        let connections = [1, 2, 10, 64, 65, 1000, 10_000];
        let workers = [1, 2, 3, 64]
            .into_iter()
            .flat_map(|workers| connections.map(|count| (workers, count)));
        for (workers, max_connections) in workers {
            let before = ConnectionLimits {
                workers,
                max_connections,
                ..ConnectionLimits::default()
            };
            for sockets in (0..2000).step_by(7).chain([before.sockets()]) {
                let mut limits = before.clone();
                let is_possible = limits.reduce_sockets(sockets);

                assert_eq!(
                    is_possible,
                    sockets >= 3 * before.running_workers(),
                    "{before:?} {sockets}"
                );
                if is_possible {
                    assert!(
                        limits.sockets() <= sockets,
                        "{before:?} {sockets}: {limits:?}"
                    );
                    assert!(
                        limits.max_connections <= before.max_connections
                            && limits.served_connections() > 0
                    );
                    let are_enough = sockets >= before.sockets();
                    assert_eq!(
                        limits.served_connections() == before.served_connections(),
                        are_enough,
                        "{limits:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn each_worker_has_an_equal_share() {
        for (workers, max_connections, expected) in [
            (1, 1, [1, 1, 1]),
            (4, 3, [3, 3, 1]),
            (4, 10, [4, 8, 2]),
            (4, 1000, [4, 1000, 64]),
            (3, 1000, [3, 999, 64]),
        ] {
            let limits = ConnectionLimits {
                workers,
                max_connections,
                ..ConnectionLimits::default()
            };
            let shares = [
                limits.running_workers(),
                limits.served_connections(),
                limits.queued_connections_per_worker(),
            ];
            assert_eq!(shares, expected, "{limits:?}");
        }
    }
}
