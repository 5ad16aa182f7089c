use std::time::Duration;

/// How the adapter uses its database. Every duration is greater than zero.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    /// Handling of pending migrations at the start.
    pub schema: SchemaMode,
    /// Whether the start fails if PostgreSQL cannot be reached.
    pub required_at_start: bool,
    /// Connections for reads per worker, 1 or more. The process has three more: two for creates, one for readiness.
    pub connections_per_worker: usize,
    /// Whether a pooler assigns a server connection to each transaction. Then no state stays on a connection.
    pub transaction_pooling: bool,
    /// Time between two questions whether the server is still the primary, if no connection reports it.
    pub probe_interval: Duration,
    /// Timeout for opening a connection, and again for preparing it.
    pub connect_timeout: Duration,
    /// Timeout for each response of PostgreSQL.
    pub timeout: Duration,
    /// Capacity of the queue of a worker for reads.
    pub max_waiting_reads: usize,
    /// Capacity of each of the two queues for creates: without and with an idempotency key.
    pub max_waiting_creates: usize,
    /// How long an idempotency key is kept, in whole milliseconds.
    pub idempotency_retention: Duration,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            schema: SchemaMode::Migrate,
            required_at_start: false,
            connections_per_worker: 2,
            transaction_pooling: false,
            probe_interval: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(2),
            max_waiting_reads: 2000,
            max_waiting_creates: 1000,
            idempotency_retention: Duration::from_hours(24),
        }
    }
}

/// Switches off the timeouts that a user, a database or a server sets for its sessions. `idle_session_timeout` exists
/// since PostgreSQL 14, `transaction_timeout` since 17.
pub(crate) const NO_TIMEOUTS: &str = "
    SELECT set_config(name, '0', false)
    FROM unnest(ARRAY['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
        'idle_session_timeout', 'transaction_timeout']) AS name
    WHERE current_setting(name, true) IS NOT NULL";

/// Handling of pending migrations at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaMode {
    /// The start runs them.
    Migrate,
    /// The start fails.
    Check,
}

impl PostgresSettings {
    /// The settings of every transaction, as statements that begin with `set`: `SET` or `SET LOCAL`.
    ///
    /// PostgreSQL ends a slow statement before the timeout for its response, so that it does not cost the connection.
    /// It also ends a transaction that this process abandoned, because other transactions may wait for its locks. A
    /// statement may wait for a lock as long as it may run.
    ///
    /// The others force the plans that `reads/query.rs` and the statements of `creates` are written for: index scans
    /// for reads, hash joins for creates. A plan lives as long as its connection, and on a small table PostgreSQL would
    /// choose plans that are wrong for a large one. JIT compilation takes longer than any statement of this crate.
    ///
    /// With `row_security = off`, PostgreSQL refuses statements from which a policy would hide rows. A commit that did not
    /// wait for a standby is a warning.
    pub(crate) fn set_statements(&self, set: &str) -> String {
        let statement_timeout = (self.timeout * 3 / 4).as_millis().max(1);
        let idle_timeout = self.timeout.as_millis().max(1);
        format!(
            "{set} statement_timeout = {statement_timeout}; \
             {set} idle_in_transaction_session_timeout = {idle_timeout}; {set} lock_timeout = 0; \
             {set} client_min_messages = warning; {set} row_security = off; {set} plan_cache_mode = force_generic_plan; \
             {set} enable_seqscan = off; {set} enable_bitmapscan = off; {set} enable_sort = off; {set} enable_nestloop = off; {set} jit = off"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_statement_ends_before_the_timeout_for_its_response() {
        for (timeout, statement, idle) in [(2_000_000, 1_500, 2_000), (999, 1, 1)] {
            let settings = PostgresSettings {
                timeout: Duration::from_micros(timeout),
                ..PostgresSettings::default()
            };
            let expected = format!(
                "SET LOCAL statement_timeout = {statement}; SET LOCAL idle_in_transaction_session_timeout = {idle}; "
            );
            let statements = settings.set_statements("SET LOCAL");
            assert!(
                statements.starts_with(&expected) && statements.ends_with("; SET LOCAL jit = off"),
                "{statements}"
            );
        }
    }
}
