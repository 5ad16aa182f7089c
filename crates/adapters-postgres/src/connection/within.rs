use std::time::Duration;

use tokio::time::timeout;

use crate::error::ConnectionError;

/// Waits for a response. Fails with [`ConnectionError::NoResponse`] after the timeout.
pub(crate) async fn within<T, E: Into<ConnectionError>>(
    limit: Duration,
    response: impl Future<Output = Result<T, E>>,
) -> Result<T, ConnectionError> {
    timeout(limit, response)
        .await
        .map_err(|_| ConnectionError::NoResponse)?
        .map_err(Into::into)
}
