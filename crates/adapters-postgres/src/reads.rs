//! Reads in batches.
//!
//! **Problem.** A worker has many reads in flight and few connections. A connection per read costs PostgreSQL a
//! process, and a statement per read costs it more than the rows. A bad plan reads the whole table.
//!
//! **Invariant.** The reads of a worker wait in one queue. A batch has a statement for each kind of its reads: gets,
//! lists, and lists by status. The statements are sent together, and each fails alone. Each read gets what its own
//! statement would have returned, and every plan is an index scan. Behind a pooler, each statement is a transaction
//! that leaves nothing on the server's connection.
//!
//! **Proof.** In `tests/postgres`: `read_batches.rs`, `read_failures.rs`, `read_plans.rs` (EXPLAIN on empty, small,
//! skewed and large tables), `pooler.rs` (PgBouncer).

mod query;
mod read;
mod session;

use std::sync::OnceLock;

use animal_store_adapter_kit::queue::Sender;
use animal_store_app::ports::StoreResult;
use animal_store_domain::Pet;

pub(crate) use self::read::{Page, Read};
use self::session::ReadSession;
use crate::{batching::batching, connection::ConnectionSettings, purpose::Purpose};

/// Reads of one worker.
pub(crate) struct Reads {
    pub(crate) settings: ConnectionSettings,
    /// Created by the first read, on the runtime of the worker.
    sender: OnceLock<Sender<Read>>,
}

impl Reads {
    pub(crate) const fn new(settings: ConnectionSettings) -> Self {
        Self {
            settings,
            sender: OnceLock::new(),
        }
    }

    pub(crate) async fn send(&self, read: Read) -> StoreResult<Vec<Pet>> {
        let start = || batching::<ReadSession>(Purpose::Reads, &self.settings).0;
        let sender = self.sender.get_or_init(start);
        sender.send(read, self.settings.postgres.timeout).await
    }

    /// Whether reads have begun and not all connections are lost.
    pub(crate) fn are_connected(&self) -> bool {
        self.sender.get().is_some_and(Sender::is_served)
    }
}
