//! Reads that share connections.
//!
//! **Problem.** A worker has many reads in flight and few connections. A connection per read costs PostgreSQL a
//! process; one read at a time per connection costs a round trip each. A bad plan reads the whole table.
//!
//! **Invariant.** Statements are sent without waiting for earlier responses, each read gets its own response, and every
//! plan is an index scan. Behind a pooler, each read is a transaction that leaves nothing on the server's connection. A
//! connection that does not respond in time is replaced; the other connections of the worker stay in use.
//!
//! **Proof.** `tests/postgres/reads.rs` (responses, dropped reads, held responses), `read_plans.rs` (EXPLAIN on empty,
//! small, skewed and large tables), `pooled_reads.rs` (through PgBouncer).

mod query;
mod session;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use animal_store_app::ports::StorageError;

pub(crate) use self::query::PetQuery;
use self::session::ReadSession;
use crate::{
    connection::{Connection, ConnectionSettings, Supervisor},
    error::NotConnected,
    pet_row::PetRow,
};

/// The read connections of one worker.
pub(crate) struct Reads {
    settings: ConnectionSettings,
    /// Created by the first read, on the runtime of the worker.
    supervisors: OnceLock<Vec<Supervisor<ReadSession>>>,
    next: AtomicUsize,
}

impl Reads {
    pub(crate) fn new(settings: ConnectionSettings) -> Self {
        Self { settings, supervisors: OnceLock::new(), next: AtomicUsize::new(0) }
    }

    /// Runs a query on the next connection that is up.
    pub(crate) async fn load(&self, query: PetQuery) -> Result<Vec<PetRow>, StorageError> {
        let connection = self.next_connection().await?;
        connection.load(query, &self.settings).await
    }

    /// Uses the connections in turn and skips unavailable ones.
    async fn next_connection(&self) -> Result<Arc<Connection<ReadSession>>, NotConnected> {
        let supervisors = self.supervisors.get_or_init(|| {
            let count = self.settings.postgres.connections_per_worker;
            (0..count).map(|_| Supervisor::new(self.settings.clone(), "reads")).collect()
        });
        let next = self.next.fetch_add(1, Ordering::Relaxed) % supervisors.len();
        let (before, from_next) = supervisors.split_at(next);
        match from_next.iter().chain(before).find_map(|supervisor| supervisor.connection_now().ok()) {
            Some(connection) => Ok(connection),
            None => supervisors[next].connection().await,
        }
    }
}
