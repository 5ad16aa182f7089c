use std::time::Duration;

use animal_store_adapter_kit::backoff;
use redis::{Cmd, Pipeline, Value, cmd, pipe};
use tokio::time::sleep;

use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure},
};

/// Maximum number of attempts at a change that other changes interrupt.
const MAX_ATTEMPTS: usize = 40;
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// What is to be written after the keys were read, in one step, and the result of the call if it is.
pub(super) struct Decision<T> {
    pub(super) write: Write,
    pub(super) result: T,
}

pub(super) enum Write {
    Nothing,
    Transaction(Pipeline),
    Script(Cmd),
}

/// A decision that was executed.
pub(super) struct Executed<T> {
    pub(super) result: T,
    pub(super) connection: Connection,
    pub(super) has_written: bool,
}

impl Keyspace {
    /// Opens a connection that watches the index.
    pub(super) async fn watch(&self) -> keyspace::Result<Connection> {
        let mut connection = self.connect().await?;
        // Without the permission for MULTI, Redis would apply each command of a transaction by itself. The driver does
        // not detect that, so it is tested first.
        let mut commands = pipe();
        commands.cmd("MULTI").cmd("EXEC");
        commands.cmd("WATCH").arg(&self.index);
        commands.exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// Runs a transaction. `decide` reads. Retries if another change came first, even if there is nothing to write, so
    /// that all reads show the same state.
    pub(super) async fn transact<T, F>(
        &self,
        decide: impl Fn(Connection) -> F + Send + Sync,
    ) -> keyspace::Result<Executed<T>>
    where
        T: Send,
        F: Future<Output = keyspace::Result<Decision<T>>> + Send,
    {
        for pause in backoff(MIN_PAUSE, MAX_PAUSE).take(MAX_ATTEMPTS) {
            let mut connection = self.watch().await?;
            let Decision { write, result } = decide(connection.clone()).await?;
            let has_written = !matches!(write, Write::Nothing);
            let response = execute(&mut connection, write).await?;
            if response != Value::Nil {
                return Ok(Executed {
                    result,
                    connection,
                    has_written,
                });
            }
            sleep(pause).await;
        }
        let problem = "too many concurrent changes of API keys";
        Err(RedisFailure::Unavailable(problem.to_owned()))
    }
}

/// Returns the response of Redis: none if another change came first.
async fn execute(connection: &mut Connection, write: Write) -> keyspace::Result<Value> {
    let executed = match write {
        // Even a full Redis accepts a transaction without commands.
        Write::Nothing => {
            cmd("MULTI").exec_async(connection).await?;
            return Ok(cmd("EXEC").query_async(connection).await?);
        }
        Write::Transaction(mut commands) => commands.atomic().query_async(connection).await,
        Write::Script(script) => script.query_async(connection).await,
    };
    executed.map_err(RedisFailure::of_change)
}
