use std::time::Duration;

/// How the database is used.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    /// What to do about the schema before the first request.
    pub schema: SchemaMode,
    /// Whether the database has to be there when the process starts.
    pub required_at_start: bool,
    /// Connections for reads that each worker opens; two more write, and one is for probes.
    pub connections_per_worker: usize,
    /// Whether a pooler gives each transaction another connection of the server: nothing may be left on it then.
    pub transaction_pooling: bool,
    /// For opening a connection.
    pub connect_timeout: Duration,
    /// For each answer of the database.
    pub timeout: Duration,
    /// The most creates that wait for the commit before theirs; those with an idempotency key are counted apart.
    pub max_waiting_creates: usize,
    /// How long an idempotency key is kept.
    pub idempotency_retention: Duration,
}

/// What to do about migrations that the database has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaMode {
    /// Run them.
    Migrate,
    /// Refuse to work.
    Check,
}

impl PostgresSettings {
    /// Where little happens, and everything may take so long.
    #[cfg(test)]
    pub(crate) fn of_tests(patience: Duration) -> Self {
        Self {
            schema: SchemaMode::Check,
            required_at_start: true,
            connections_per_worker: 1,
            transaction_pooling: false,
            connect_timeout: patience,
            timeout: patience,
            max_waiting_creates: 1,
            idempotency_retention: Duration::from_hours(24),
        }
    }

    /// What every transaction of ours is to find set, by statements that begin like this: `SET`, `SET LOCAL`.
    ///
    /// A statement may take less time in the server than its answer may take here: one that is merely slow is ended
    /// there, and costs no connection. A transaction that this process does not go on with, because it stands still or
    /// cannot be reached, ends there as well: others may wait for what it has locked.
    pub(crate) fn statements(&self, set: &str) -> String {
        let timeout = (self.timeout * 3 / 4).as_millis().max(1);
        let idle = self.timeout.as_millis().max(1);
        let plans = PLANS.map(|plan| format!("; {set} {plan}")).concat();
        format!("{set} statement_timeout = {timeout}; {set} idle_in_transaction_session_timeout = {idle}{plans}")
    }
}

/// These make every plan of `pet_query.rs` a walk along an index, whatever the table looks like when it is made: on a
/// small one, reading it whole looks cheaper, and the plan would stay. In the same way, a batch that is taken for a small
/// one would be joined by loops in loops. What is off counts as very expensive where there is no other way, and what is
/// expensive would be compiled, which takes longer than any of our statements.
pub(crate) const PLANS: [&str; 6] = [
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_bitmapscan = off",
    "enable_sort = off",
    "enable_nestloop = off",
    "jit = off",
];
