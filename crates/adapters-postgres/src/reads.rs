//! Reads in batches.
//!
//! **Problem.** A worker has many reads in flight and few connections. A connection per read costs PostgreSQL a
//! process, and a statement per read costs it more than the rows. A bad plan reads the whole table.
//!
//! **Invariant.** Each kind of read has batches of its own: gets, lists, and lists by status. Each read gets what its
//! own statement would have returned, and every plan is an index scan. Behind a pooler, each batch is a transaction
//! that leaves nothing on the server's connection.
//!
//! **Proof.** In `tests/postgres`: `read_batches.rs`, `read_failures.rs`, `read_plans.rs` (EXPLAIN on empty, small,
//! skewed and large tables), `pooler.rs` (PgBouncer).

mod query;
mod session;

use std::sync::OnceLock;

use animal_store_adapter_kit::queue::Sender;
use animal_store_app::ports::StoreResult;
use animal_store_domain::Pet;

use self::session::ReadSession;
pub(crate) use self::session::{List, Read};
use crate::{batching::batching, connection::ConnectionSettings};

/// Reads of one worker.
pub(crate) struct Reads {
    settings: ConnectionSettings,
    /// Gets, lists, and lists by status. Created by the first read, on the runtime of the worker.
    senders: OnceLock<[Sender<Read>; 3]>,
}

impl Reads {
    pub(crate) const fn new(settings: ConnectionSettings) -> Self {
        Self {
            settings,
            senders: OnceLock::new(),
        }
    }

    pub(crate) async fn send(&self, read: Read) -> StoreResult<Vec<Pet>> {
        let [gets, lists, lists_by_status] = self.senders.get_or_init(|| self.start());
        let sender = match &read {
            Read::Get(_) => gets,
            Read::List(List { status: None, .. }) => lists,
            Read::List(_) => lists_by_status,
        };
        sender.send(read, self.settings.postgres.timeout).await
    }

    /// Whether reads have begun and not all connections are lost.
    pub(crate) fn are_connected(&self) -> bool {
        self.senders
            .get()
            .is_some_and(|[gets, ..]| gets.is_served())
    }

    fn start(&self) -> [Sender<Read>; 3] {
        let postgres = &self.settings.postgres;
        let metrics = &self.settings.metrics;
        let (senders, _dispatchers) = batching::<ReadSession, 3>(
            &self.settings,
            metrics.reads.each_ref(),
            postgres.max_waiting_reads,
            &metrics.read_connections,
            postgres.connections_per_worker,
        );
        senders
    }
}
