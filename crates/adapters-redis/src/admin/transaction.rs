use std::time::Duration;

use animal_store_adapter_kit::backoff;
use redis::{Pipeline, Value, pipe};
use tokio::time::sleep;

use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure},
};

/// Maximum number of attempts at a change that other changes interrupt.
const MAX_ATTEMPTS: usize = 40;
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The commands that apply a change, in one step, and its result.
pub(super) type Decision<T> = keyspace::Result<(Pipeline, T)>;

impl Keyspace {
    /// Opens a connection that watches the index.
    pub(super) async fn watch(&self) -> keyspace::Result<Connection> {
        let mut connection = self.connect(|_| ()).await?;
        // Without the permission for MULTI, Redis would apply each command of a transaction by itself. The driver does
        // not detect that, so it is tested first.
        let mut commands = pipe();
        commands
            .cmd("MULTI")
            .cmd("EXEC")
            .cmd("WATCH")
            .arg(&self.index);
        commands.exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// Runs a transaction: `decide` reads, and decides what to write. Retries if another change came first, even if
    /// there is nothing to write, so that all reads show the same state. Returns the connection as well.
    pub(super) async fn transact<T, F>(
        &self,
        decide: impl Fn(Connection) -> F + Send + Sync,
    ) -> keyspace::Result<(T, Connection)>
    where
        T: Send,
        F: Future<Output = Decision<T>> + Send,
    {
        for pause in backoff(MIN_PAUSE, MAX_PAUSE).take(MAX_ATTEMPTS) {
            let mut connection = self.watch().await?;
            let (commands, result) = decide(connection.clone()).await?;
            let executed: Value = if commands.is_empty() {
                // Even a full Redis accepts a transaction without commands.
                pipe()
                    .cmd("MULTI")
                    .ignore()
                    .cmd("EXEC")
                    .query_async(&mut connection)
                    .await?
            } else {
                let executed = commands.query_async(&mut connection).await;
                executed
                    .map_err(|error| RedisFailure::of_change(error, commands.is_transaction()))?
            };
            if executed != Value::Nil && executed != Value::Array(vec![Value::Nil]) {
                return Ok((result, connection));
            }
            sleep(pause).await;
        }
        Err(RedisFailure::Unavailable(
            "too many concurrent changes of API keys".to_owned(),
        ))
    }
}
