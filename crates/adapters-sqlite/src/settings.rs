use std::time::Duration;

/// How the adapter uses its file. Every duration is greater than zero.
#[derive(Debug, Clone)]
pub struct SqliteSettings {
    /// Longest time that a request waits in a queue, and longest wait for the lock of another process.
    pub timeout: Duration,
    /// Capacity of the queue for reads of each worker.
    pub max_waiting_reads: usize,
    /// Capacity of the queue for creates.
    pub max_waiting_creates: usize,
    /// How long an idempotency key is kept, in whole milliseconds.
    pub idempotency_retention: Duration,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(2),
            max_waiting_reads: 2000,
            max_waiting_creates: 1000,
            idempotency_retention: Duration::from_hours(24),
        }
    }
}
