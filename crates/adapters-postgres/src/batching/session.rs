use animal_store_adapter_kit::queue::Request;
use animal_store_app::ports::StoreFailure;
use tokio_postgres::Client;

use crate::{
    PostgresSettings,
    connection::{ConnectionSettings, ConnectionTask},
    error::{ConnectionError, within},
};

/// Reason to replace a connection that does not respond: later responses would be delayed as well.
pub(crate) const NO_RESPONSE: &str = "the server did not respond in time";

/// Reason to replace a connection to a read-only server: after a fail-over, another server accepts writes.
pub(crate) const READ_ONLY: &str = "the server is read-only";

/// A connection that is prepared for batches of requests.
pub(crate) trait Session: Sized + Send + 'static {
    type Request: Request<Response = Result<Self::Response, StoreFailure>> + Sync;
    type Response: Send;

    /// Purpose of the connection, for the log.
    const PURPOSE: &'static str;

    /// Greatest number of rows in a batch of several requests.
    const MAX_ROWS: usize;

    /// Whether the outcome of a batch that ended without a response is unknown.
    const CHANGES_PETS: bool;

    /// Opens a connection within the connect timeout, and prepares it within the same timeout.
    fn open(
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Result<(Self, ConnectionTask), ConnectionError>> + Send {
        async {
            let (postgres, connect_timeout) = (&settings.postgres, settings.postgres.connect_timeout);
            let (client, task) = settings.endpoint.connect(connect_timeout).await?;
            let preparing = async {
                if !postgres.transaction_pooling {
                    client.batch_execute(&postgres.set_statements("SET")).await?;
                }
                Self::prepare(client, postgres).await
            };
            let session = within(connect_timeout, preparing).await.map_err(|error| settings.endpoint.locate(error))?;
            Ok((session, task))
        }
    }

    fn prepare(
        client: Client,
        settings: &PostgresSettings,
    ) -> impl Future<Output = Result<Self, ConnectionError>> + Send;

    /// Executes a batch. Returns the responses in the order of the requests.
    fn execute(
        &mut self,
        requests: &[&Self::Request],
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Result<Vec<Result<Self::Response, StoreFailure>>, Failure>> + Send;
}

/// A batch was not executed, or its outcome is unknown.
pub(crate) struct Failure {
    pub(crate) error: BatchError,
    pub(crate) extent: Extent,
}

/// What a failure is about.
pub(crate) enum Extent {
    /// One of the requests may have failed the others: they are executed again in smaller batches.
    Request,
    Batch,
    /// The connection has to be replaced, for this reason.
    Connection(&'static str),
}

/// The error of each request of a batch.
#[derive(Clone)]
pub(crate) enum BatchError {
    Timeout,
    Unavailable(String),
    Corrupt(String),
    OutcomeUnknown(String),
}

impl BatchError {
    pub(crate) fn not_connected() -> Self {
        Self::Unavailable("there is no connection to PostgreSQL".to_owned())
    }

    pub(crate) const fn of(self, extent: Extent) -> Failure {
        Failure { error: self, extent }
    }
}

impl From<BatchError> for StoreFailure {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Timeout => Self::Timeout,
            BatchError::Unavailable(reason) => Self::Unavailable(reason.into()),
            BatchError::Corrupt(cause) => Self::Corrupt(cause.into()),
            BatchError::OutcomeUnknown(reason) => Self::OutcomeUnknown(reason.into()),
        }
    }
}
