//! Reads in batches.
//!
//! **Problem.** A worker has many reads in flight and few connections. A connection per read costs PostgreSQL a
//! process, and a statement per read costs it more than the rows. A bad plan reads the whole table.
//!
//! **Invariant.** Each kind of read has batches of its own: gets, lists, and lists by status. Each read gets what its
//! own statement would have returned, and every plan is an index scan. Behind a pooler, each batch is a transaction
//! that leaves nothing on the server's connection. A connection that does not respond in time is replaced; the other
//! connections of the worker stay in use.
//!
//! **Proof.** `tests/postgres/read_responses.rs` (each response, as a property), `read_batches.rs`, `reads.rs` (held
//! responses), `read_plans.rs` (EXPLAIN on empty, small, skewed and large tables), `pooled_reads.rs` (PgBouncer).

mod get;
mod list;
mod query;
mod read;
mod session;

use std::sync::{Arc, OnceLock};

use animal_store_app::ports::StoreFailure;
use animal_store_domain::{Pet, PetId, PetStatus};

use self::{
    get::Get,
    list::List,
    read::{Batched, Read},
};
use crate::{
    batching::Batcher,
    connection::{ConnectionSettings, Supervisors},
};

/// The reads of one worker.
pub(crate) struct Reads {
    settings: ConnectionSettings,
    /// Created by the first read, on the runtime of the worker.
    batchers: OnceLock<Batchers>,
}

struct Batchers {
    gets: Batcher<Batched<Get>>,
    lists: Batcher<Batched<List>>,
    lists_by_status: Batcher<Batched<List>>,
}

impl Reads {
    pub(crate) fn new(settings: ConnectionSettings) -> Self {
        Self { settings, batchers: OnceLock::new() }
    }

    pub(crate) async fn find(&self, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        respond(&self.batchers().gets, Get(id)).await
    }

    pub(crate) async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<Pet>, StoreFailure> {
        let Batchers { lists, lists_by_status, .. } = self.batchers();
        let batcher = if status.is_some() { lists_by_status } else { lists };
        respond(batcher, List { status, after, limit }).await
    }

    fn batchers(&self) -> &Batchers {
        self.batchers.get_or_init(|| {
            let settings = &self.settings;
            let metrics = &settings.metrics;
            let count = settings.postgres.connections_per_worker;
            let supervisors = Arc::new(Supervisors::new(settings, "reads", &metrics.read_connections, count));
            let capacity = settings.postgres.max_waiting_reads;
            Batchers {
                lists: Batcher::start(settings, &supervisors, capacity, &metrics.lists).0,
                lists_by_status: Batcher::start(settings, &supervisors, capacity, &metrics.lists_by_status).0,
                gets: Batcher::start(settings, &supervisors, capacity, &metrics.gets).0,
            }
        })
    }
}

async fn respond<R: Read>(batcher: &Batcher<Batched<R>>, read: R) -> Result<R::Response, StoreFailure> {
    let response = batcher.send(Batched(read)).await;
    response.unwrap_or_else(|| Err(StoreFailure::Unavailable("the dispatcher of reads has stopped".into())))
}
