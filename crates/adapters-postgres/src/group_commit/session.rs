//! One statement that adds any number of animals, and what its failure means.

use std::{marker::PhantomData, time::Duration};

use tokio::time::timeout;
use tokio_postgres::{
    CancelToken, Client, Row, Statement,
    error::{Severity, SqlState},
    types::{ToSql, Type},
};

use crate::{
    PostgresSettings,
    error::{ConnectionError, describe},
    link::{LATE, Session},
};

use super::create::Create;

/// Whatever the database has: at a higher level, whoever waited for a record of another process is refused, as it is not
/// the one that was there when the transaction began.
const ISOLATION: &str = "READ COMMITTED";

/// A connection that writes. Diesel does not tell SQLSTATEs apart, and what became of a commit is read from them: this
/// one is the driver's own, without Diesel.
pub(crate) struct WriteSession<C> {
    client: Client,
    way: Way,
    creates: PhantomData<fn(C)>,
}

enum Way {
    /// The statement is its own transaction.
    Prepared(Statement),
    /// For a pooler: nothing is left on the server's connection.
    InTransaction { begin: String, statement: String },
}

/// Why a batch was not added.
pub(super) enum Failure {
    /// Nothing was sent.
    NotSent(String),
    /// PostgreSQL says that it did nothing, and why.
    Refused(SqlState, String),
    /// It may have been added.
    Unknown(String),
}

impl<C: Create> Session for WriteSession<C> {
    const PURPOSE: &'static str = C::PURPOSE;

    type Settings = PostgresSettings;

    async fn begin(client: Client, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        let statement = C::statement(settings);
        let more = |set| C::setting(settings).map_or_else(String::new, |setting| format!("; {set} {setting}"));
        let way = if settings.transaction_pooling {
            let (set, more) = (settings.statements("SET LOCAL"), more("SET LOCAL"));
            Way::InTransaction { begin: format!("BEGIN ISOLATION LEVEL {ISOLATION}; {set}{more}"), statement }
        } else {
            let isolation = format!("SET default_transaction_isolation = '{ISOLATION}'");
            client.batch_execute(&format!("{isolation}{}", more("SET"))).await?;
            Way::Prepared(client.prepare_typed(&statement, C::TYPES).await?)
        };
        warn_of_promises_not_kept(&client, C::PURPOSE).await?;
        Ok(Self { client, way, creates: PhantomData })
    }
}

/// With these off, PostgreSQL says that it has stored what a power failure undoes.
async fn warn_of_promises_not_kept(client: &Client, purpose: &str) -> Result<(), ConnectionError> {
    for setting in ["fsync", "synchronous_commit"] {
        let row = client.query_typed_one("SELECT current_setting($1)", &[(&setting, Type::TEXT)]).await?;
        if row.try_get::<_, &str>(0)? == "off" {
            tracing::warn!(setting, purpose, "PostgreSQL has this off: animals that were answered 201 can be lost");
        }
    }
    Ok(())
}

impl<C: Create> WriteSession<C> {
    /// Adds these animals in one commit and returns what became of each. Only a trigger of somebody else's can leave one
    /// out. Each answer of the server may take so long.
    pub(super) async fn insert(&self, creates: &[&C], patience: Duration) -> Result<Vec<Option<C::Outcome>>, Failure> {
        if self.client.is_closed() {
            return Err(Failure::NotSent("the connection was closed".to_owned()));
        }
        if let Way::InTransaction { begin, .. } = &self.way {
            let begun = timeout(patience, self.client.batch_execute(begin)).await;
            let begun = begun.map_err(|_| Failure::NotSent(LATE.to_owned()))?;
            begun.map_err(|error| Failure::NotSent(describe(&error)))?;
        }
        let rows = timeout(patience, self.insert_and_commit(creates)).await;
        let rows = rows.map_err(|_| Failure::Unknown(LATE.to_owned()))??;
        outcomes::<C>(&rows, creates.len()).ok_or_else(|| Failure::Unknown("it returned what it cannot".to_owned()))
    }

    /// The rows may come before the commit, but the last word after them does not.
    async fn insert_and_commit(&self, creates: &[&C]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let columns = C::columns(creates);
        let columns = columns.iter().map(|column| &**column as &(dyn ToSql + Sync));
        match &self.way {
            Way::Prepared(statement) => self.client.query(statement, &columns.collect::<Vec<_>>()).await,
            Way::InTransaction { statement, .. } => {
                let typed: Vec<_> = columns.zip(C::TYPES.iter().cloned()).collect();
                let inserted = self.client.query_typed(statement, &typed).await;
                let end = if inserted.is_ok() { "COMMIT" } else { "ROLLBACK" };
                let ended = self.client.batch_execute(end).await;
                let rows = inserted?;
                ended.map(|()| rows)
            }
        }
    }

    /// By which whatever the server is still doing can be ended.
    pub(super) fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }
}

/// By their positions; `None` where the rows are not what they have to be.
fn outcomes<C: Create>(rows: &[Row], count: usize) -> Option<Vec<Option<C::Outcome>>> {
    let mut outcomes: Vec<_> = (0..count).map(|_| None).collect();
    for row in rows {
        let position: i64 = row.try_get(0).ok()?;
        *outcomes.get_mut(usize::try_from(position - 1).ok()?)? = Some(C::outcome(row)?);
    }
    Some(outcomes)
}

impl From<tokio_postgres::Error> for Failure {
    /// An ERROR has rolled back whatever it was about. Anything else, a FATAL "terminating connection" among them, may
    /// come after the commit.
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if db.parsed_severity() == Some(Severity::Error) && !is_about_the_connection(db.code()) => {
                Self::Refused(db.code().clone(), describe(&error))
            }
            _ => Self::Unknown(describe(&error)),
        }
    }
}

/// Class 08, and "statement completion unknown".
fn is_about_the_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}
