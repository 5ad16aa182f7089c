use animal_store_adapter_kit::queue::Request;
use tokio_postgres::Client;

use super::failure::Failure;
use crate::{
    PostgresSettings,
    connection::{ConnectionSettings, ConnectionTask},
    error::ConnectionError,
    purpose::Purpose,
};

/// A connection that is prepared for batches of requests.
pub(crate) trait Session: Sized + Send + 'static {
    type Request: Request + Sync;

    /// Greatest number of rows in a batch of several requests.
    const MAX_ROWS: usize;

    /// Opens and prepares a connection.
    fn open(
        purpose: Purpose,
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Result<(Self, ConnectionTask), ConnectionError>> + Send {
        async move {
            let (client, task) = settings.connect().await?;
            let limit = settings.postgres.connect_timeout;
            let prepare = Self::prepare(purpose, client, &task, &settings.postgres);
            let session = settings.endpoint.within(limit, prepare).await?;
            Ok((session, task))
        }
    }

    fn prepare(
        purpose: Purpose,
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
pub(crate) type Executed<R> = Vec<Result<<R as Request>::Response, Failure>>;
