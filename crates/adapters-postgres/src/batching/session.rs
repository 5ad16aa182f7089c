use animal_store_adapter_kit::queue::Request;

use super::failure::Failure;
use crate::{
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
    ) -> impl Future<Output = Result<Connected<Self>, ConnectionError>> + Send;

    /// Executes a batch. Returns the responses in the order of the requests.
    fn execute(
        &mut self,
        requests: &[&Self::Request],
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Executed<Self::Request>> + Send;
}

/// A session, with the task that ends with its connection.
pub(crate) struct Connected<S> {
    pub(crate) session: S,
    pub(crate) task: ConnectionTask,
}

/// The responses to a batch.
pub(crate) type Executed<R> = Vec<Result<<R as Request>::Response, Failure>>;
