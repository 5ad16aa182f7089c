use std::time::Duration;

use animal_store_adapter_kit::backoff;
use redis::{Pipeline, Value, pipe};
use tokio::time::sleep;

use crate::{
    connection::Connection,
    keyspace::{Keyspace, RedisFailure},
};

/// Maximum number of attempts at a change that other changes interrupt.
const MAX_ATTEMPTS: usize = 40;
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The commands that a transaction applies, and its result.
pub(super) type Decision<T> = Result<(Pipeline, T), RedisFailure>;

/// Repeats an attempt until it returns a result. `None` means that another change came first.
pub(super) async fn retry<T, F>(attempt: impl Fn() -> F + Send + Sync) -> Result<T, RedisFailure>
where
    T: Send,
    F: Future<Output = Result<Option<T>, RedisFailure>> + Send,
{
    for pause in backoff(MIN_PAUSE, MAX_PAUSE).take(MAX_ATTEMPTS) {
        if let Some(result) = attempt().await? {
            return Ok(result);
        }
        sleep(pause).await;
    }
    Err(RedisFailure::Unavailable("too many concurrent changes of API keys".to_owned()))
}

/// Opens a connection that watches the index.
pub(super) async fn watch(keyspace: &Keyspace) -> Result<Connection, RedisFailure> {
    let mut connection = keyspace.connect(|_| ()).await?;
    // Without the permission for MULTI, Redis would apply each command of a transaction by itself. The driver does not
    // detect that, so it is tested first.
    let mut commands = pipe();
    commands.cmd("MULTI").cmd("EXEC").cmd("WATCH").arg(&keyspace.layout.index);
    commands.exec_async(&mut connection).await?;
    Ok(connection)
}

/// Runs a transaction: `decide` reads, and decides what to write. Retries if the index was changed meanwhile, even if
/// there is nothing to write, so that all reads show the same state.
pub(super) async fn transact<T, F>(
    keyspace: &Keyspace,
    decide: impl Fn(Connection) -> F + Send + Sync,
) -> Result<T, RedisFailure>
where
    T: Send,
    F: Future<Output = Decision<T>> + Send,
{
    retry(|| async {
        let mut connection = watch(keyspace).await?;
        let (mut commands, result) = decide(connection.clone()).await?;
        let executed = if commands.is_empty() {
            // Even a full Redis accepts a transaction without commands.
            pipe().cmd("MULTI").cmd("EXEC").query_async::<(Value, Value)>(&mut connection).await?.1
        } else {
            commands.atomic().query_async(&mut connection).await.map_err(RedisFailure::of_change)?
        };
        Ok((executed != Value::Nil).then_some(result))
    })
    .await
}
