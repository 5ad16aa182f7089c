use std::time::Duration;

use animal_store_app::ports::StoreFailure;
use tokio::time::sleep;
use tokio_postgres::{
    Client, Row,
    error::{DbError, SqlState},
};

use super::create::{self, Create, MAX_BATCH, Response};
use crate::{
    PostgresSettings,
    batching::{Affected, Connected, Executed, Failure, Lost, Session, SessionStatement, Value},
    checks::{NOT_DURABLE, texts},
    connection::{Commits, ConnectionSettings, OpenConnection, within},
    error::ConnectionError,
    purpose::Purpose,
};

/// The pause of creates after each batch that found the disk full.
const DISK_FULL_PAUSE: Duration = Duration::from_secs(1);

/// A connection that adds batches, with or without idempotency keys. It does not use Diesel, which hides the SQLSTATEs
/// that decide about the outcome.
pub(super) struct CreateSession {
    client: Client,
    commits: Commits,
    has_keys: bool,
    /// Behind a pooler, the statements that begin a transaction. Otherwise the statement is one.
    begin: Option<String>,
    statement: SessionStatement,
}

/// A batch that was not added, as far as is known.
struct NotAdded {
    error: ConnectionError,
    /// Whether the commit was requested.
    may_be_committed: bool,
}

impl Session for CreateSession {
    type Request = Create;

    const MAX_ROWS: usize = MAX_BATCH;

    async fn open(
        purpose: Purpose,
        settings: &ConnectionSettings,
    ) -> Result<Connected<Self>, ConnectionError> {
        let OpenConnection { client, task } = settings.connect().await?;
        let prepare = Self::prepare(purpose, client, task.commits(), &settings.postgres);
        let session = settings.within(prepare).await?;
        Ok(Connected { session, task })
    }

    /// Retries once after a conflict with another transaction. The timeout applies to each response of the server.
    async fn execute(
        &mut self,
        creates: &[&Create],
        settings: &ConnectionSettings,
    ) -> Executed<Create> {
        let limit = settings.postgres.timeout;
        let mut added = self.add(creates, limit).await;
        if let Err(NotAdded { error, .. }) = &added
            && let Some(&(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED)) =
                error.refusal()
        {
            added = self.add(creates, limit).await;
        }
        let failure = match added {
            Ok(rows) => match create::responses(&rows, creates.len()) {
                Some(responses) => return responses,
                None => self.outcome_unknown("the statement returned an invalid row", settings),
            },
            Err(NotAdded { error, .. }) if self.is_locked(&error) && creates.len() == 1 => {
                return vec![Ok(locked_by(&error))];
            }
            Err(not_added) => self.failure(not_added, settings).await,
        };
        vec![Err(failure); creates.len()]
    }
}

/// Returns what the lock timeout ended the wait for. The context of the error names the table of a record that is locked.
fn locked_by(error: &ConnectionError) -> Response {
    let context = error.refused().and_then(DbError::where_);
    if context.is_some_and(|context| context.contains("idempotency_keys")) {
        Response::Locked
    } else {
        Response::TableLocked
    }
}

/// Bounds the wait for the record of another process, which delays the other creates of the batch.
fn lock_timeout(settings: &PostgresSettings) -> String {
    let milliseconds = (settings.timeout / 20).as_millis().max(1);
    format!("lock_timeout = {milliseconds}")
}

impl CreateSession {
    async fn prepare(
        purpose: Purpose,
        client: Client,
        commits: Commits,
        settings: &PostgresSettings,
    ) -> Result<Self, ConnectionError> {
        let has_keys = purpose == Purpose::KeyedCreates;
        let begin = if settings.transaction_pooling {
            let mut statements = vec![
                "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned(),
                settings.set_statements("SET LOCAL"),
            ];
            if has_keys {
                statements.push(format!("SET LOCAL {}", lock_timeout(settings)));
            }
            Some(statements.join("; "))
        } else {
            if has_keys {
                let set = format!("SET {}", lock_timeout(settings));
                client.batch_execute(&set).await?;
            }
            None
        };
        let statement = if has_keys {
            create::keyed_statement(settings)
        } else {
            create::plain_statement()
        };
        let statement = SessionStatement::new(&client, statement, settings).await?;
        for setting in texts(&client, NOT_DURABLE).await? {
            let purpose = purpose.as_str();
            tracing::warn!(
                setting,
                purpose,
                "this setting of PostgreSQL is off: pets confirmed with 201 can be lost"
            );
        }
        Ok(Self {
            client,
            commits,
            has_keys,
            begin,
            statement,
        })
    }

    /// Adds a batch in one commit. Rows may arrive before the commit, but the end of the response does not.
    async fn add(&self, creates: &[&Create], limit: Duration) -> Result<Vec<Row>, NotAdded> {
        let not_added = |error| NotAdded {
            error,
            may_be_committed: false,
        };
        let unknown = |error| NotAdded {
            error,
            may_be_committed: true,
        };
        if self.client.is_closed() {
            return Err(not_added(ConnectionError::Closed));
        }
        let arrays = create::parameters(creates);
        let values: Vec<Value<'_>> = arrays.iter().map(|array| &**array as _).collect();
        let statement = self.statement.query(&self.client, &values);
        let Some(begin) = &self.begin else {
            return self.commits.within(limit, statement).await.map_err(unknown);
        };
        let inserted = async {
            within(limit, self.client.batch_execute(begin)).await?;
            within(limit, statement).await
        };
        let rows = match inserted.await {
            Ok(rows) => rows,
            Err(error) => {
                if error.refusal().is_some() {
                    // If it fails, so does the next transaction.
                    let _ = within(limit, self.client.batch_execute("ROLLBACK")).await;
                }
                return Err(not_added(error));
            }
        };
        let commit = self.client.batch_execute("COMMIT");
        let committed = self.commits.within(limit, commit).await;
        committed.map(|()| rows).map_err(unknown)
    }

    /// Whether another process has locked the record of a key, or a table.
    fn is_locked(&self, error: &ConnectionError) -> bool {
        self.has_keys && error.refusal() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    async fn failure(&self, not_added: NotAdded, settings: &ConnectionSettings) -> Failure {
        let error = not_added.error;
        let Some(refused) = error.refused() else {
            if not_added.may_be_committed {
                return self.outcome_unknown(&error.to_string(), settings);
            }
            let lost = Affected::Connection(Lost::BeforeCommit);
            return Failure::new(settings.endpoint.locate(error).into(), lost);
        };
        let affects = match *refused.code() {
            SqlState::QUERY_CANCELED => {
                return Failure::new(StoreFailure::Timeout, Affected::Batch);
            }
            SqlState::DISK_FULL => {
                // Without a pause, creates would take each block that is freed, and no key could be revoked.
                sleep(DISK_FULL_PAUSE).await;
                Affected::Batch
            }
            SqlState::READ_ONLY_SQL_TRANSACTION => Affected::Connection(Lost::ReadOnly),
            SqlState::LOCK_NOT_AVAILABLE if self.has_keys => Affected::Row,
            _ => Affected::by(refused),
        };
        Failure::new(settings.endpoint.locate(error).into(), affects)
    }

    /// Cancels the statement. A commit that waits for a standby does not notice that its client has disconnected; such
    /// commits would use up all connections of the server.
    fn outcome_unknown(&self, cause: &str, settings: &ConnectionSettings) -> Failure {
        let endpoint = settings.endpoint.clone();
        let limit = settings.postgres.timeout;
        let token = self.client.cancel_token();
        tokio::spawn(async move { endpoint.cancel(token, limit).await });
        let failure = StoreFailure::OutcomeUnknown(cause.into());
        Failure::new(failure, Affected::Connection(Lost::InCommit))
    }
}
