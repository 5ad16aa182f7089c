use std::{collections::VecDeque, sync::Arc, time::Duration};

use animal_store_app::ports::{AddPetError, StorageError};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::{
    add_request::AddRequest,
    queue::{Pending, Queue},
    session::{BatchError, BatchResult, BatchSession},
};
use crate::{
    PgEndpoint,
    connection::{Connection, READ_ONLY, Supervisor},
};

/// Greatest number of pets that one statement adds.
pub(super) const MAX_BATCH: usize = 1000;

/// Number of batches that a batch is split into after a lock timeout: after four splits, a row is alone.
const LOCK_TIMEOUT_SPLIT: usize = 8;

pub(super) struct Writer<R: AddRequest> {
    pub(super) queue: Arc<Queue<R>>,
    pub(super) supervisor: Arc<Supervisor<BatchSession<R>>>,
    pub(super) endpoint: PgEndpoint,
    pub(super) timeout: Duration,
}

impl<R: AddRequest> Writer<R> {
    pub(super) async fn run(self) {
        while let Some(mut batch) = self.queue.take_batch(MAX_BATCH).await {
            batch.sort_by(|one, other| R::order(&one.request, &other.request));
            // Bounds the delay of the queue, however often the batch is split.
            let deadline = Instant::now() + self.timeout * 2;
            let mut batches = VecDeque::from([batch]);
            while let Some(batch) = batches.pop_front() {
                if Instant::now() > deadline {
                    fail(batch, || StorageError::Timeout.into());
                    continue;
                }
                match self.supervisor.connection().await {
                    Ok(connection) => self.add(batch, &connection, &mut batches).await,
                    Err(error) => fail(batch, || StorageError::from(error).into()),
                }
            }
        }
    }

    /// Adds a batch in one commit and responds to its requests. If one row may fail the others, puts smaller batches
    /// into `batches` instead.
    async fn add(
        &self,
        mut batch: Vec<Pending<R>>,
        connection: &Connection<BatchSession<R>>,
        batches: &mut VecDeque<Vec<Pending<R>>>,
    ) {
        match self.add_with_retry(&batch, &connection.session).await {
            Ok(stored) => batch.into_iter().zip(stored).for_each(|(pending, stored)| pending.respond(stored)),
            // Each of these batches may wait for a lock again: there are few of them, and they come after all others.
            Err(BatchError::Refused(SqlState::LOCK_NOT_AVAILABLE, _)) if batch.len() > 1 => {
                let size = batch.len().div_ceil(LOCK_TIMEOUT_SPLIT);
                while batch.len() > size {
                    batches.push_back(batch.split_off(batch.len() - size));
                }
                batches.push_back(batch);
            }
            Err(BatchError::Refused(code, _)) if is_about_one_row(&code) && batch.len() > 1 => {
                batches.push_front(batch.split_off(batch.len() / 2));
                batches.push_front(batch);
            }
            Err(BatchError::Refused(code, error)) => {
                if code == SqlState::READ_ONLY_SQL_TRANSACTION {
                    connection.mark_broken(READ_ONLY);
                }
                let reason = self.endpoint.locate(error).to_string();
                fail(batch, || refused(&code, &reason).into());
            }
            Err(BatchError::NotSent(reason)) => {
                connection.mark_broken("the connection could not begin a transaction");
                fail(batch, || StorageError::Unavailable(reason.clone().into()).into());
            }
            Err(BatchError::OutcomeUnknown(reason)) => {
                connection.mark_broken("the connection did not report the outcome of a commit");
                self.cancel(connection);
                fail(batch, || AddPetError::OutcomeUnknown(reason.clone().into()));
            }
        }
    }

    /// Retries once after a conflict with another transaction.
    async fn add_with_retry(&self, batch: &[Pending<R>], session: &BatchSession<R>) -> BatchResult<R> {
        let requests: Vec<_> = batch.iter().map(|pending| &pending.request).collect();
        match session.add(&requests, self.timeout).await {
            Err(BatchError::Refused(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED, _)) => {
                session.add(&requests, self.timeout).await
            }
            result => result,
        }
    }

    /// Cancels the statement of a broken connection. A commit that waits for a standby does not notice that its client
    /// has disconnected; such commits would use up all connections of the server.
    fn cancel(&self, connection: &Connection<BatchSession<R>>) {
        let (endpoint, token, timeout) = (self.endpoint.clone(), connection.session.cancel_token(), self.timeout);
        tokio::spawn(async move { endpoint.cancel(token, timeout).await });
    }
}

fn is_about_one_row(code: &SqlState) -> bool {
    code.code().starts_with("22") || code.code().starts_with("23")
}

fn refused(code: &SqlState, reason: &str) -> StorageError {
    match *code {
        SqlState::QUERY_CANCELED => StorageError::Timeout,
        _ => StorageError::Unavailable(reason.into()),
    }
}

fn fail<R: AddRequest>(batch: Vec<Pending<R>>, error: impl Fn() -> AddPetError) {
    for pending in batch {
        pending.fail(error());
    }
}

impl<R: AddRequest> Drop for Writer<R> {
    /// Pending requests fail at once, even if the writer panicked.
    fn drop(&mut self) {
        self.queue.close_and_clear();
    }
}
