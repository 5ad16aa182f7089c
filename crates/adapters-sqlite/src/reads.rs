//! Reads, in batches of each worker.
//!
//! **Problem.** A read of a page that is not in memory waits for the disk; on the thread of an HTTP worker, all
//! requests of that worker would wait. A change of threads costs more than most reads.
//!
//! **Invariant.** A dispatcher takes all reads that wait, and a thread for blocking work executes them. So two changes
//! of threads serve a batch, and a read that waits for the disk delays at most the reads of its batch. A batch begins
//! after its reads were taken, so a read sees each pet that was confirmed before it. The queue is bounded. A failed
//! connection is replaced, and the other reads go on; a panic fails its batch.
//!
//! **Proof.** `tests/sqlite/reads.rs`.

use std::{sync::Arc, time::Instant};

use animal_store_adapter_kit::queue::{Pending, Request, Sender, Taker, queue};
use animal_store_app::ports::StoreFailure;
use animal_store_domain::{Pet, PetId, PetStatus};
use diesel::{SqliteConnection, connection::SimpleConnection, prelude::*};

use crate::{
    pet_row::{PetRow, pets},
    session::Session,
    storage::Shared,
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
pub(crate) fn start(shared: &Arc<Shared>) -> Sender<Read> {
    let (sender, takers) = queue(
        shared.settings.max_waiting_reads,
        None,
        shared.read_metrics.clone(),
    );
    for _ in 0..DISPATCHERS {
        tokio::spawn(dispatch(Arc::clone(shared), takers.taker()));
    }
    sender
}

/// Executes batches.
async fn dispatch(shared: Arc<Shared>, taker: Taker<Read>) {
    // Closed before the end of the storage.
    let session = Session::new(&shared.file);
    while taker.ready().await {
        let (start, metrics) = (Instant::now(), taker.metrics());
        let mut batch = taker.take(MAX_ROWS);
        let size = batch.len();
        for pending in &mut batch {
            pending.sent(size, metrics);
        }
        // A panic drops the batch, which fails its reads.
        let Ok(executed) = session.run(|session| Ok(execute_all(session, batch))).await else {
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

/// Executes reads in one transaction, which costs less than one for each.
fn execute_all(session: &Session, batch: Vec<Pending<Read>>) -> Vec<(Pending<Read>, Rows)> {
    let shares_transaction = batch.len() > 1;
    let control = |statement| {
        if shares_transaction {
            // After a failure, the next read opens another connection.
            let _ = session.execute(|connection| Ok(connection.batch_execute(statement)?));
        }
    };
    control("BEGIN");
    let execute = |pending: Pending<Read>| {
        let rows = session.execute(|connection| Ok(pending.request.execute(connection)?));
        (pending, rows.map_err(StoreFailure::from))
    };
    let executed = batch
        .into_iter()
        .filter(Pending::is_awaited)
        .map(execute)
        .collect();
    control("COMMIT");
    executed
}

impl Read {
    /// Each query is a range of the table, or of the index on (status, id), in its order.
    fn execute(&self, connection: &mut SqliteConnection) -> QueryResult<Vec<Pet>> {
        let (status, after, limit) = match *self {
            Self::Find(id) => {
                let row = pets::table
                    .find(id.get())
                    .select(PetRow::as_select())
                    .get_result(connection)
                    .optional()?;
                return row.into_iter().map(Pet::try_from).collect();
            }
            Self::List {
                status,
                after,
                limit,
            } => (status, after.map_or(0, PetId::get), limit),
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let page = pets::table
            .filter(pets::id.gt(after))
            .order(pets::id)
            .limit(limit)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_counts_the_rows_that_it_may_return() {
        assert_eq!(Read::Find(PetId::parse(7).unwrap()).rows(), 1);
        assert_eq!(
            Read::List {
                status: None,
                after: None,
                limit: 7
            }
            .rows(),
            7
        );
    }
}
