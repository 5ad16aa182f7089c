//! Reads, in batches of each worker.
//!
//! **Problem.** A read of a page that is not in memory waits for the disk; on the thread of an HTTP worker, all
//! requests of that worker would wait. A change of threads costs more than most reads.
//!
//! **Invariant.** A dispatcher takes all reads that wait, and a thread for blocking work executes them. So two changes
//! of threads serve a batch, and a read that waits for the disk delays at most the reads of its batch. A batch begins
//! after its reads were taken, so a read sees each pet that was confirmed before it. The queue is bounded. A failed
//! connection is replaced, and the other reads go on. A panic fails its batch; one of a dispatcher ends the process.
//!
//! **Proof.** `tests/sqlite/reads.rs`.

use std::{sync::Arc, time::Instant};

use animal_store_adapter_kit::{
    metrics::QueueMetrics,
    queue::{Pending, Request, Sender, Taker, queue},
};
use animal_store_app::ports::StoreFailure;
use animal_store_domain::{Pet, PetId, PetStatus};
use diesel::{SqliteConnection, connection::SimpleConnection, prelude::*};

use crate::{
    creates::Creates,
    pet_row::{PetRow, pets},
    session::Session,
};

/// Number of batches of a worker that are executed at the same time.
const DISPATCHERS: usize = 2;

/// Greatest number of rows that a batch reads.
const MAX_ROWS: usize = 500;

/// A read of a worker.
pub(crate) enum Read {
    Find(PetId),
    List {
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    },
}

/// Takes reads and executes them, on a connection of its own.
struct Dispatcher {
    session: Session,
    taker: Taker<Read>,
    /// Dropped after the connection is closed, so the storage ends later.
    _storage: Arc<Creates>,
}

type Rows = Result<Vec<Pet>, StoreFailure>;

impl Request for Read {
    type Response = Vec<Pet>;

    fn rows(&self) -> usize {
        match self {
            Self::Find(_) => 1,
            Self::List { limit, .. } => *limit,
        }
    }
}

/// Starts the dispatchers of a worker, on the current runtime. They end after the sender is dropped.
pub(crate) fn start(
    storage: &Arc<Creates>,
    capacity: usize,
    metrics: QueueMetrics,
) -> Sender<Read> {
    let (sender, takers) = queue(capacity, None, metrics);
    for _ in 0..DISPATCHERS {
        let dispatcher = Dispatcher {
            session: Session::new(&storage.file),
            taker: takers.taker(),
            _storage: Arc::clone(storage),
        };
        tokio::spawn(storage.panics.clone().note(dispatcher.run()));
    }
    sender
}

impl Dispatcher {
    async fn run(self) {
        while self.taker.ready().await {
            let start = Instant::now();
            let metrics = self.taker.metrics();
            let mut batch = self.taker.take(MAX_ROWS);
            let size = batch.len();
            for pending in &mut batch {
                pending.sent(size, metrics);
            }
            // A panic drops the batch, which fails its reads.
            let executing = self.session.run(|session| Ok(execute_all(session, batch)));
            let Ok(executed) = executing.await else {
                continue;
            };
            metrics
                .batch_duration
                .observe(start.elapsed().as_secs_f64());
            for (pending, rows) in executed {
                pending.respond(metrics, |_| rows);
            }
        }
    }
}

/// Executes reads in one transaction, which costs less than one for each.
fn execute_all(session: &Session, batch: Vec<Pending<Read>>) -> Vec<(Pending<Read>, Rows)> {
    let shares_transaction = batch.len() > 1;
    if shares_transaction {
        control(session, "BEGIN");
    }
    let mut executed = Vec::new();
    for pending in batch {
        if pending.is_awaited() {
            let rows = session.execute(|connection| Ok(pending.request.execute(connection)?));
            executed.push((pending, rows.map_err(StoreFailure::from)));
        }
    }
    if shares_transaction {
        control(session, "COMMIT");
    }
    executed
}

/// Begins or ends a transaction. After a failure, the next read opens another connection.
fn control(session: &Session, statement: &str) {
    let _ = session.execute(|connection| Ok(connection.batch_execute(statement)?));
}

impl Read {
    /// Each query is a range of the table, or of the index on (status, id), in its order.
    fn execute(&self, connection: &mut SqliteConnection) -> QueryResult<Vec<Pet>> {
        match *self {
            Self::Find(id) => find(connection, id),
            Self::List {
                status,
                after,
                limit,
            } => list(connection, status, after, limit),
        }
    }
}

fn find(connection: &mut SqliteConnection, id: PetId) -> QueryResult<Vec<Pet>> {
    let row = pets::table
        .find(id.get())
        .select(PetRow::as_select())
        .get_result(connection)
        .optional()?;
    row.into_iter().map(Pet::try_from).collect()
}

fn list(
    connection: &mut SqliteConnection,
    status: Option<PetStatus>,
    after: Option<PetId>,
    limit: usize,
) -> QueryResult<Vec<Pet>> {
    let page = pets::table
        .filter(pets::id.gt(after.map_or(0, PetId::get)))
        .order(pets::id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select(PetRow::as_select());
    let pet = |row: QueryResult<PetRow>| Pet::try_from(row?);
    match status.map(PetStatus::number) {
        Some(status) => page
            .filter(pets::status.eq(status))
            .load_iter(connection)?
            .map(pet)
            .collect(),
        None => page.load_iter(connection)?.map(pet).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_counts_the_rows_that_it_may_return() {
        let list = Read::List {
            status: None,
            after: None,
            limit: 7,
        };
        assert_eq!(Read::Find(PetId::parse(7).unwrap()).rows(), 1);
        assert_eq!(list.rows(), 7);
    }
}
