use std::time::Duration;

/// How the database is used.
#[derive(Debug, Clone)]
pub struct PgSettings {
    /// What to do about the schema before the first request.
    pub schema: SchemaMode,
    /// Whether the database has to be there when the process starts.
    pub required_at_start: bool,
    /// Connections for reads that each worker opens; one more writes, and one is for probes.
    pub connections_per_worker: usize,
    /// Whether a pooler gives each transaction another connection of the server: nothing may be left on it then.
    pub transaction_pooling: bool,
    /// For opening a connection.
    pub connect_timeout: Duration,
    /// For each answer of the database.
    pub timeout: Duration,
    /// The most creates that wait for the commit before theirs.
    pub max_waiting_creates: usize,
}

/// What to do about migrations that the database has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaMode {
    /// Run them.
    Migrate,
    /// Refuse to work.
    Check,
}

impl PgSettings {
    /// For a statement in the server, in milliseconds: less than for its answer, so that a statement that is merely
    /// slow is ended there and costs no connection here.
    pub(crate) fn statement_timeout(&self) -> u128 {
        (self.timeout * 3 / 4).as_millis().max(1)
    }
}
