use std::{marker::PhantomData, time::Duration};

use tokio::time::timeout;
use tokio_postgres::{
    CancelToken, Client, Row, Statement,
    error::{Severity, SqlState},
    types::{ToSql, Type},
};

use super::add_request::AddRequest;
use crate::{
    PostgresSettings,
    connection::{NO_RESPONSE, Session},
    error::{ConnectionError, describe},
};

/// Overrides the default of the database. At a higher level, PostgreSQL refuses a statement that waited for the record
/// of another process, because the record is newer than the statement's snapshot.
const ISOLATION: &str = "READ COMMITTED";

/// A connection that adds batches. It does not use Diesel, which hides the SQLSTATEs that decide about the outcome.
pub(crate) struct BatchSession<R> {
    client: Client,
    execution: Execution,
    request: PhantomData<fn(R)>,
}

enum Execution {
    /// The statement is a transaction.
    Prepared(Statement),
    /// Behind a pooler: nothing stays on the server's connection.
    InTransaction { begin: String, statement: String, types: Vec<Type> },
}

/// The stored result of each request; `None` means that a database trigger suppressed the row.
pub(super) type BatchResult<R> = Result<Vec<Option<<R as AddRequest>::Stored>>, BatchError>;

/// A batch was not added, or its outcome is unknown.
pub(super) enum BatchError {
    NotSent(String),
    /// PostgreSQL refused the batch: nothing was stored.
    Refused(SqlState, tokio_postgres::Error),
    /// The batch may have been stored.
    OutcomeUnknown(String),
}

impl<R: AddRequest> Session for BatchSession<R> {
    async fn prepare(client: Client, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        let statement = R::statement(settings);
        let types: Vec<_> = R::columns().into_iter().map(|(_, array)| array).collect();
        let extra = |set| R::setting(settings).map_or_else(String::new, |setting| format!("; {set} {setting}"));
        let execution = if settings.transaction_pooling {
            let (set, extra) = (settings.set_statements("SET LOCAL"), extra("SET LOCAL"));
            let begin = format!("BEGIN ISOLATION LEVEL {ISOLATION}; {set}{extra}");
            Execution::InTransaction { begin, statement, types }
        } else {
            let isolation = format!("SET default_transaction_isolation = '{ISOLATION}'");
            client.batch_execute(&format!("{isolation}{}", extra("SET"))).await?;
            Execution::Prepared(client.prepare_typed(&statement, &types).await?)
        };
        warn_if_not_durable(&client, R::PURPOSE).await?;
        Ok(Self { client, execution, request: PhantomData })
    }
}

/// Warns about settings with which PostgreSQL confirms commits that a power failure undoes.
async fn warn_if_not_durable(client: &Client, purpose: &str) -> Result<(), ConnectionError> {
    for setting in ["fsync", "synchronous_commit"] {
        let row = client.query_typed_one("SELECT current_setting($1)", &[(&setting, Type::TEXT)]).await?;
        if row.try_get::<_, &str>(0)? == "off" {
            tracing::warn!(setting, purpose, "this setting of PostgreSQL is off: pets confirmed with 201 can be lost");
        }
    }
    Ok(())
}

impl<R: AddRequest> BatchSession<R> {
    /// Adds a batch in one commit. The timeout applies to each response of the server.
    pub(super) async fn add(&self, requests: &[&R], response_timeout: Duration) -> BatchResult<R> {
        if self.client.is_closed() {
            return Err(BatchError::NotSent("the connection was closed".to_owned()));
        }
        if let Execution::InTransaction { begin, .. } = &self.execution {
            let response = timeout(response_timeout, self.client.batch_execute(begin)).await;
            let response = response.map_err(|_| BatchError::NotSent(NO_RESPONSE.to_owned()))?;
            response.map_err(|error| BatchError::NotSent(describe(&error)))?;
        }
        let rows = timeout(response_timeout, self.execute_and_commit(requests)).await;
        let rows = rows.map_err(|_| BatchError::OutcomeUnknown(NO_RESPONSE.to_owned()))??;
        by_position::<R>(&rows, requests.len())
            .ok_or_else(|| BatchError::OutcomeUnknown("the statement returned an invalid row".to_owned()))
    }

    /// Rows may arrive before the commit, but the end of the response does not.
    async fn execute_and_commit(&self, requests: &[&R]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let arrays = R::arrays(requests);
        let arrays = arrays.iter().map(|array| &**array as &(dyn ToSql + Sync));
        match &self.execution {
            Execution::Prepared(statement) => self.client.query(statement, &arrays.collect::<Vec<_>>()).await,
            Execution::InTransaction { statement, types, .. } => {
                let typed: Vec<_> = arrays.zip(types.iter().cloned()).collect();
                let inserted = self.client.query_typed(statement, &typed).await;
                let end = if inserted.is_ok() { "COMMIT" } else { "ROLLBACK" };
                let ended = self.client.batch_execute(end).await;
                let rows = inserted?;
                ended.map(|()| rows)
            }
        }
    }

    pub(super) fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }
}

/// Returns the stored results by position; `None` if a row is not valid.
fn by_position<R: AddRequest>(rows: &[Row], count: usize) -> Option<Vec<Option<R::Stored>>> {
    let mut stored: Vec<_> = (0..count).map(|_| None).collect();
    for row in rows {
        let position: i64 = row.try_get(0).ok()?;
        *stored.get_mut(usize::try_from(position - 1).ok()?)? = Some(R::stored(row)?);
    }
    Some(stored)
}

impl From<tokio_postgres::Error> for BatchError {
    /// An ERROR has rolled back the transaction. Anything else, such as FATAL "terminating connection", may come after
    /// the commit.
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if db.parsed_severity() == Some(Severity::Error) && !is_about_the_connection(db.code()) => {
                Self::Refused(db.code().clone(), error)
            }
            _ => Self::OutcomeUnknown(describe(&error)),
        }
    }
}

/// Class 08, and "statement completion unknown".
fn is_about_the_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}
