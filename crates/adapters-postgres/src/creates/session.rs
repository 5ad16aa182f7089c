use std::time::Duration;

use animal_store_app::ports::StoreFailure;
use tokio::time::sleep;
use tokio_postgres::{Client, Row, error::SqlState, types::ToSql};

use super::create::{self, Create, MAX_BATCH, Response};
use crate::{
    PostgresSettings,
    batching::{Executed, Extent, Failure, Session, SessionStatement},
    checks::{NOT_DURABLE, problems},
    connection::{Commits, ConnectionSettings, ConnectionTask},
    error::{ConnectionError, READ_ONLY, Suspect, within},
};

/// The pause of creates after each batch that found the disk full.
const DISK_FULL_PAUSE: Duration = Duration::from_secs(1);

/// A connection that adds batches, with or without idempotency keys. It does not use Diesel, which hides the SQLSTATEs
/// that decide about the outcome.
pub(super) struct CreateSession<const KEYED: bool> {
    client: Client,
    commits: Commits,
    /// Behind a pooler, the statements that begin a transaction. Otherwise the statement is one.
    begin: Option<String>,
    statement: SessionStatement,
}

impl<const KEYED: bool> Session for CreateSession<KEYED> {
    type Request = Create;

    const PURPOSE: &'static str = if KEYED {
        "creates with a key"
    } else {
        "creates"
    };
    const MAX_ROWS: usize = MAX_BATCH;
    const CHANGES_PETS: bool = true;

    async fn prepare(
        client: Client,
        task: &ConnectionTask,
        settings: &PostgresSettings,
    ) -> Result<Self, ConnectionError> {
        let is_pooling = settings.transaction_pooling;
        let (set, isolation) = if is_pooling {
            ("SET LOCAL", "transaction_isolation")
        } else {
            ("SET", "default_transaction_isolation")
        };
        // The wait for the record of another process delays the other creates of the batch.
        let lock_timeout = (settings.timeout / 20).as_millis().max(1);
        let lock_timeout = if KEYED {
            format!("; {set} lock_timeout = {lock_timeout}")
        } else {
            String::new()
        };
        // At a higher level, PostgreSQL refuses a statement that waited for the record of another process, because the
        // record is newer than the statement's snapshot.
        let own_settings = format!("{set} {isolation} = 'read committed'{lock_timeout}");
        let begin = if is_pooling {
            Some(format!(
                "BEGIN; {own_settings}; {}",
                settings.set_statements(set)
            ))
        } else {
            client.batch_execute(&own_settings).await?;
            None
        };
        let statement = if KEYED {
            create::keyed_statement(settings)
        } else {
            create::plain_statement()
        };
        let statement = SessionStatement::new(&client, statement, settings).await?;
        for setting in problems(&client, NOT_DURABLE).await? {
            let purpose = Self::PURPOSE;
            tracing::warn!(
                setting,
                purpose,
                "this setting of PostgreSQL is off: pets confirmed with 201 can be lost"
            );
        }
        Ok(Self {
            client,
            commits: task.commits(),
            begin,
            statement,
        })
    }

    /// Retries once after a conflict with another transaction. The timeout applies to each response of the server.
    async fn execute(
        &mut self,
        creates: &[&Create],
        settings: &ConnectionSettings,
    ) -> Executed<Create> {
        let limit = settings.postgres.timeout;
        let mut added = self.add(creates, limit).await;
        if let Err((error, _)) = &added
            && let Some(&(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED)) =
                error.refusal()
        {
            added = self.add(creates, limit).await;
        }
        let (error, may_be_committed) = match added {
            Ok(rows) => {
                let invalid = || {
                    self.outcome_unknown(
                        "the statement returned an invalid row".to_owned(),
                        settings,
                    )
                };
                return create::responses(&rows, creates).ok_or_else(invalid);
            }
            Err(error) => error,
        };
        let extent = match error.refusal() {
            None if may_be_committed => {
                return Err(self.outcome_unknown(error.to_string(), settings));
            }
            None => Extent::Connection("the connection failed before a commit"),
            Some(&SqlState::QUERY_CANCELED) => return Err(Failure::timeout(Extent::Batch)),
            Some(&SqlState::DISK_FULL) => {
                // Without a pause, creates would take each block that is freed, and no key could be revoked.
                sleep(DISK_FULL_PAUSE).await;
                Extent::Batch
            }
            Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Extent::Connection(READ_ONLY),
            Some(&SqlState::LOCK_NOT_AVAILABLE) if KEYED && creates.len() == 1 => {
                return Ok(vec![Ok(Response::Locked)]);
            }
            Some(&SqlState::LOCK_NOT_AVAILABLE) if KEYED => Extent::Request,
            Some(_) => match error.suspect() {
                Some(Suspect::Request) => Extent::Request,
                Some(Suspect::Session) => Extent::Session,
                Some(Suspect::Database) | None => Extent::Batch,
            },
        };
        Err(Failure::unavailable(error, extent, settings))
    }
}

impl<const KEYED: bool> CreateSession<KEYED> {
    /// Adds a batch in one commit. Rows may arrive before the commit, but the end of the response does not. With an
    /// error, returns whether the commit was requested.
    async fn add(
        &self,
        creates: &[&Create],
        limit: Duration,
    ) -> Result<Vec<Row>, (ConnectionError, bool)> {
        if self.client.is_closed() {
            return Err((ConnectionError::Closed, false));
        }
        let arrays = create::parameters(creates);
        let values: Vec<_> = arrays
            .iter()
            .map(|array| &**array as &(dyn ToSql + Sync))
            .collect();
        let statement = self.statement.query(&self.client, &values);
        let Some(begin) = &self.begin else {
            let rows = self.commits.within(limit, statement).await;
            return rows.map_err(|error| (error, true));
        };
        let inserted = async {
            within(limit, self.client.batch_execute(begin)).await?;
            within(limit, statement).await
        };
        match inserted.await {
            Ok(rows) => {
                let commit = self.client.batch_execute("COMMIT");
                let committed = self.commits.within(limit, commit).await;
                committed.map(|()| rows).map_err(|error| (error, true))
            }
            Err(error) => {
                if error.refusal().is_some() {
                    // If it fails, so does the next transaction.
                    let _ = within(limit, self.client.batch_execute("ROLLBACK")).await;
                }
                Err((error, false))
            }
        }
    }

    /// Cancels the statement. A commit that waits for a standby does not notice that its client has disconnected; such
    /// commits would use up all connections of the server.
    fn outcome_unknown(&self, reason: String, settings: &ConnectionSettings) -> Failure {
        let (endpoint, limit) = (settings.endpoint.clone(), settings.postgres.timeout);
        let token = self.client.cancel_token();
        tokio::spawn(async move { endpoint.cancel(token, limit).await });
        let extent = Extent::Connection("the connection did not report the outcome of a commit");
        Failure {
            error: StoreFailure::OutcomeUnknown,
            reason,
            extent,
        }
    }
}
