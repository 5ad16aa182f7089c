use std::{convert::Infallible, time::Duration};

use redis::{AsyncConnectionConfig, PushInfo, RedisResult, aio::MultiplexedConnection, cmd};
use thiserror::Error;

use super::{
    endpoint::{CLIENT_NAME, RedisEndpoint},
    failure::describe_connect,
};

/// A connection could not be opened.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(crate) struct ConnectError(String);

impl RedisEndpoint {
    /// Opens a connection. `timeout` bounds opening it, and each response. `on_push` is called for each push message,
    /// in the order in which pushes and responses arrive.
    pub(crate) async fn connect(
        &self,
        timeout: Duration,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<MultiplexedConnection, ConnectError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_push_sender(move |push| {
                on_push(push);
                Ok::<_, Infallible>(())
            });
        let opened = async {
            let mut connection = self.client().get_multiplexed_async_connection_with_config(&config).await?;
            set_name(&mut connection).await?;
            Ok(connection)
        };
        opened.await.map_err(|error| ConnectError(describe_connect(self, &error)))
    }
}

/// Sets the name that `CLIENT LIST` shows. Every user may execute `HELLO`; `CLIENT SETNAME` would need a permission.
async fn set_name(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    match cmd("HELLO").arg(3).arg("SETNAME").arg(CLIENT_NAME).exec_async(connection).await {
        // A connection without a name works.
        Err(error) if error.code().is_some() => Ok(()),
        outcome => outcome,
    }
}
