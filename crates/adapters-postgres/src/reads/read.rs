use std::panic::AssertUnwindSafe;

use animal_store_app::ports::StoreFailure;
use diesel::{
    QueryResult,
    result::{
        DatabaseErrorKind::{ClosedConnection, UnableToSendCommand},
        Error::{DatabaseError, DeserializationError},
    },
};
use diesel_async::AsyncPgConnection;
use futures_util::FutureExt;
use tokio::time::{Instant, timeout};

use super::session::ReadSession;
use crate::{
    batching::{BatchError, Failure, Request, Split},
    connection::{Connection, ConnectionSettings, NO_RESPONSE},
};

/// A kind of read.
pub(crate) trait Read: Send + Sync + 'static {
    type Response: Send + 'static;

    /// Greatest number of rows in the response.
    fn rows(&self) -> usize;

    /// Loads a batch by one statement. Returns the responses in the order of the reads.
    fn load(
        reads: &[&Self],
        connection: &AsyncPgConnection,
    ) -> impl Future<Output = QueryResult<Vec<Result<Self::Response, StoreFailure>>>> + Send;
}

/// A read that shares its statement with others.
pub(crate) struct Batched<R>(pub(super) R);

impl<R: Read> Request for Batched<R> {
    type Session = ReadSession;
    /// An invalid row fails the reads that contain it, and no others.
    type Outcome = Result<R::Response, StoreFailure>;
    type Response = R::Response;
    type Error = StoreFailure;

    /// PostgreSQL executes such a batch in about a millisecond. A larger one costs as much per row.
    const MAX_ROWS: usize = 500;
    const OUTCOME_MATTERS: bool = false;

    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// If there is no response in time, marks the connection as broken.
    async fn execute(
        reads: &[&Self],
        connection: &Connection<ReadSession>,
        settings: &ConnectionSettings,
    ) -> Result<Vec<Self::Outcome>, Failure> {
        let reads: Vec<_> = reads.iter().map(|read| &read.0).collect();
        let limit = settings.postgres.timeout;
        // A panic must not end the dispatcher.
        let loading = AssertUnwindSafe(connection.load(&reads)).catch_unwind();
        let start = Instant::now();
        match timeout(limit, loading).await {
            Ok(Ok(loaded)) => loaded.map_err(|error| {
                let is_lost = matches!(error, DatabaseError(ClosedConnection | UnableToSendCommand, _));
                // After a statement timeout, there is no time left. Diesel does not distinguish it from other errors.
                let may_be_about_one_read = !is_lost && !connection.is_broken() && start.elapsed() < limit / 2;
                let error = match error {
                    DeserializationError(cause) => BatchError::Corrupt(cause.to_string()),
                    error => BatchError::Unavailable(settings.endpoint.locate(error).to_string()),
                };
                let one_by_one = Split { parts: reads.len(), last: false };
                Failure { error, split: may_be_about_one_read.then_some(one_by_one) }
            }),
            Ok(Err(_)) => {
                connection.mark_broken("a read panicked");
                Err(BatchError::Corrupt("the read panicked".to_owned()).into())
            }
            Err(_) => {
                connection.mark_broken(NO_RESPONSE);
                Err(BatchError::Timeout.into())
            }
        }
    }

    fn result(self, outcome: Self::Outcome) -> Self::Outcome {
        outcome
    }
}
