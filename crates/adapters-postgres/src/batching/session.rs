use animal_store_adapter_kit::queue::Request;
use animal_store_app::ports::{Cause, StoreFailure};
use tokio_postgres::Client;

use crate::{
    PostgresSettings,
    connection::{ConnectionSettings, ConnectionTask},
    error::ConnectionError,
};

/// A connection that is prepared for batches of requests.
pub(crate) trait Session: Sized + Send + 'static {
    type Request: Request + Sync;

    /// Purpose of the connection, for the log.
    const PURPOSE: &'static str;

    /// Greatest number of rows in a batch of several requests.
    const MAX_ROWS: usize;

    /// Whether the outcome of a batch that ended without a response is unknown.
    const CHANGES_PETS: bool;

    /// Opens and prepares a connection.
    fn open(
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Result<(Self, ConnectionTask), ConnectionError>> + Send {
        async {
            let ConnectionSettings {
                endpoint, postgres, ..
            } = settings;
            let (client, task) = settings.connect().await?;
            Ok((
                endpoint
                    .within(
                        postgres.connect_timeout,
                        Self::prepare(client, &task, postgres),
                    )
                    .await?,
                task,
            ))
        }
    }

    fn prepare(
        client: Client,
        task: &ConnectionTask,
        settings: &PostgresSettings,
    ) -> impl Future<Output = Result<Self, ConnectionError>> + Send;

    /// Executes a batch. Returns the responses in the order of the requests.
    fn execute(
        &mut self,
        requests: &[&Self::Request],
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Executed<Self::Request>> + Send;
}

/// The responses to a batch.
pub(crate) type Executed<R> = Result<Vec<Result<<R as Request>::Response, StoreFailure>>, Failure>;

/// A batch was not executed, or its outcome is unknown.
pub(crate) struct Failure {
    /// The error of each request, of this reason.
    pub(crate) error: fn(Cause) -> StoreFailure,
    pub(crate) reason: String,
    pub(crate) extent: Extent,
}

/// What a failure is about.
pub(crate) enum Extent {
    /// One of the requests may have failed the others: they are executed again in smaller batches.
    Request,
    Batch,
    /// The session may be unable to execute this batch, which had no effect: it is executed again in a new one.
    Session,
    /// The connection has to be replaced, for this reason.
    Connection(&'static str),
}

impl Failure {
    pub(crate) fn timeout(extent: Extent) -> Self {
        Self {
            error: |_| StoreFailure::Timeout,
            reason: String::new(),
            extent,
        }
    }

    pub(crate) fn unavailable(
        error: ConnectionError,
        extent: Extent,
        settings: &ConnectionSettings,
    ) -> Self {
        Self {
            error: StoreFailure::Unavailable,
            reason: settings.endpoint.locate(error).to_string(),
            extent,
        }
    }

    /// The failure of a batch that changes nothing.
    pub(crate) fn of_read(
        error: ConnectionError,
        extent: Extent,
        settings: &ConnectionSettings,
    ) -> Self {
        match error {
            // Later responses would be delayed as well.
            ConnectionError::NoResponse => {
                Self::timeout(Extent::Connection("the server did not respond in time"))
            }
            error => Self::unavailable(error, extent, settings),
        }
    }
}
