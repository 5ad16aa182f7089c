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

use std::sync::{Arc, OnceLock};

use animal_store_adapter_kit::queue::{Pending, Request, Sender, Taker, queue};
use animal_store_app::{ports::StoreFailure, status_number};
use animal_store_domain::{Pet, PetId, PetStatus};
use diesel::{SqliteConnection, connection::SimpleConnection, prelude::*};
use prometheus_client::metrics::counter::Counter;

use crate::{access::Session, pet_row::PetRow, storage::Shared, tables::pets};

/// Number of batches of a worker that are executed at the same time.
const DISPATCHERS: usize = 2;

/// Greatest number of rows that a batch reads.
const MAX_ROWS: usize = 500;

/// The reads of one worker.
pub(crate) struct Reads {
    pub(crate) shared: Arc<Shared>,
    /// Created by the first read, on the runtime of the worker. When it is dropped, the dispatchers end.
    queue: OnceLock<Sender<Read>>,
}

/// Executes batches.
struct Dispatcher {
    session: Session,
    taker: Taker<Read>,
    /// Dropped after the connection.
    shared: Arc<Shared>,
}

enum Read {
    Find(PetId),
    List { status: Option<PetStatus>, after: Option<PetId>, limit: usize },
}

type Rows = Result<Vec<Pet>, StoreFailure>;

impl Request for Read {
    type Response = Rows;

    fn rows(&self) -> usize {
        match self {
            Self::Find(_) => 1,
            Self::List { limit, .. } => *limit,
        }
    }
}

impl Reads {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), queue: OnceLock::new() }
    }

    pub(crate) async fn find(&self, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        Ok(self.send(Read::Find(id), &self.shared.metrics.get_timeouts).await?.pop())
    }

    pub(crate) async fn list(&self, status: Option<PetStatus>, after: Option<PetId>, limit: usize) -> Rows {
        self.send(Read::List { status, after, limit }, &self.shared.metrics.list_timeouts).await
    }

    async fn send(&self, read: Read, timeouts: &Counter) -> Rows {
        let queue = self.queue.get_or_init(|| self.start());
        let sent = queue.send(read, self.shared.settings.timeout, None).await;
        if matches!(sent, Err(StoreFailure::Timeout)) {
            timeouts.inc();
        }
        sent?
    }

    fn start(&self) -> Sender<Read> {
        let shared = &self.shared;
        let (sender, taker) = queue(shared.settings.max_waiting_reads, shared.metrics.reads.clone());
        for _ in 0..DISPATCHERS {
            let (session, taker, shared) = (Session::new(&shared.file), taker.clone(), Arc::clone(shared));
            tokio::spawn(Dispatcher { session, taker, shared }.run());
        }
        sender
    }
}

impl Dispatcher {
    async fn run(mut self) {
        while self.taker.ready().await {
            let mut batch = self.taker.take(MAX_ROWS);
            let size = batch.len();
            for pending in &mut batch {
                pending.sent(size, &self.shared.metrics.reads);
            }
            // A panic drops the batch, which fails its reads.
            let Ok(executed) = self.session.run(|session| execute_all(session, batch)).await else { continue };
            for (pending, rows) in executed {
                pending.respond(|_| rows);
            }
        }
    }
}

/// Executes reads in one transaction, which costs less than one for each.
fn execute_all(session: &mut Session, batch: Vec<Pending<Read>>) -> Vec<(Pending<Read>, Rows)> {
    let shares_transaction = batch.len() > 1;
    let control = |session: &mut Session, statement| {
        if shares_transaction {
            // After a failure, the next read opens another connection.
            let _ = session.execute(|connection| Ok(connection.batch_execute(statement)?));
        }
    };
    control(session, "BEGIN");
    let execute = |pending: Pending<Read>| {
        let rows = session.execute(|connection| Ok(pending.request.execute(connection)?));
        let rows = rows.map_err(|error| error.failure(session.file.path()));
        (pending, rows)
    };
    let executed = batch.into_iter().filter(Pending::is_awaited).map(execute).collect();
    control(session, "COMMIT");
    executed
}

impl Read {
    /// Each query is a range of the table, or of the index on (status, id), in its order.
    fn execute(&self, connection: &mut SqliteConnection) -> QueryResult<Vec<Pet>> {
        let (status, after, limit) = match *self {
            Self::Find(id) => {
                let row = pets::table.find(id.get()).select(PetRow::as_select()).get_result(connection).optional()?;
                return row.into_iter().map(Pet::try_from).collect();
            }
            Self::List { status, after, limit } => (status, after.map_or(0, PetId::get), limit),
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let page = pets::table.filter(pets::id.gt(after)).order(pets::id).limit(limit).select(PetRow::as_select());
        let pet = |row: QueryResult<PetRow>| Pet::try_from(row?);
        match status.map(status_number) {
            Some(status) => page.filter(pets::status.eq(status)).load_iter(connection)?.map(pet).collect(),
            None => page.load_iter(connection)?.map(pet).collect(),
        }
    }
}
