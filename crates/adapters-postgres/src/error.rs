//! Failures of PostgreSQL and its driver, as text for the log: never a value of a row, never a secret.

use std::{error::Error, fmt::Write, iter::successors, time::Duration};

use animal_store_app::ports::{Cause, StoreFailure};
use thiserror::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Reason to replace a connection to a read-only server: after a fail-over, another server accepts writes.
pub(crate) const READ_ONLY: &str = "PostgreSQL is read-only";

/// A connection cannot be opened or was lost.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    #[error("{}", describe(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Diesel(#[from] diesel::result::Error),
    #[error("{0}")]
    DieselSetUp(#[from] diesel::ConnectionError),
    #[error("there was no response in time")]
    NoResponse,
    #[error("the server closed the connection")]
    Closed,
    #[error("{READ_ONLY}")]
    ReadOnly,
    /// An administrator has cancelled the wait for a standby.
    #[error("the change is committed, and may not be replicated")]
    Unreplicated,
    #[error("the encoding of the database is {0}, and has to be UTF8")]
    NotUtf8(String),
    /// Each error with its login: user, host, port and database.
    #[error("{}", located(.0))]
    Located(Vec<(String, Self)>),
}

fn located(errors: &[(String, ConnectionError)]) -> String {
    errors
        .iter()
        .map(|(login, error)| format!("{login}: {error}"))
        .collect::<Vec<_>>()
        .join("; ")
}

impl ConnectionError {
    /// Returns the SQLSTATE if PostgreSQL refused a statement: an ERROR has rolled back the transaction. Anything else,
    /// such as FATAL "terminating connection", may come after the commit.
    pub(crate) fn refusal(&self) -> Option<&SqlState> {
        self.refused().map(DbError::code)
    }

    /// Returns the error of PostgreSQL that has this SQLSTATE.
    pub(crate) fn refused(&self) -> Option<&DbError> {
        let Self::Postgres(error) = self.last() else {
            return None;
        };
        let db = error
            .as_db_error()
            .filter(|db| db.parsed_severity() == Some(Severity::Error))?;
        let is_about_the_connection = db.code().code().starts_with("08")
            || *db.code() == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
        (!is_about_the_connection).then_some(db)
    }

    /// Whether encryption may be the cause: the server failed at it or refuses encrypted connections.
    pub(crate) fn may_be_about_encryption(&self) -> bool {
        let Self::Postgres(error) = self else {
            return false;
        };
        error
            .code()
            .is_none_or(|code| *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
    }

    /// Whether the encoding of the database is wrong.
    pub(crate) fn is_about_the_encoding(&self) -> bool {
        matches!(self.last(), Self::NotUtf8(_))
    }

    /// Returns the error of the last host, which decides.
    fn last(&self) -> &Self {
        match self {
            Self::Located(errors) => errors.last().map_or(self, |(_, error)| error.last()),
            error => error,
        }
    }
}

/// The schema cannot be used.
#[derive(Debug, Error)]
pub enum MigrationError {
    /// The database cannot be reached or refuses a statement. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// Another process is changing the schema. A retry may succeed.
    #[error("another process is changing the schema, and has not finished within {} seconds", .0.as_secs())]
    Locked(Duration),
    /// A migration did not get the lock of a table within 200 ms. It had no effect. A retry may succeed.
    #[error("another session uses the tables: {0}")]
    TablesInUse(String),
    /// A migration failed. It had no effect, unless it runs outside of a transaction.
    #[error("{0}")]
    Failed(String),
    /// Every attempt fails until the database or the program is changed.
    #[error("{0}")]
    Unusable(String),
}

impl From<ConnectionError> for Cause {
    fn from(error: ConnectionError) -> Self {
        error.to_string().into()
    }
}

impl From<ConnectionError> for StoreFailure {
    fn from(error: ConnectionError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<ConnectionError> for MigrationError {
    fn from(error: ConnectionError) -> Self {
        let text = error.to_string();
        if error.is_about_the_encoding() {
            Self::Unusable(text)
        } else {
            Self::Unavailable(text)
        }
    }
}

/// Returns the failure of a request whose row cannot be decoded.
pub(crate) fn invalid_row(error: tokio_postgres::Error) -> StoreFailure {
    StoreFailure::Corrupt(ConnectionError::from(error).into())
}

/// Returns the message with its SQLSTATE, table, column and constraint. The detail is left out: it may repeat the row.
fn describe(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        let sources = successors(error.source(), |&error| error.source());
        return sources.fold(error.to_string(), |text, source| {
            format!("{text}: {source}")
        });
    };
    let mut text = format!("{} (SQLSTATE {}", db.message(), db.code().code());
    for (kind, name) in [
        ("table", db.table()),
        ("column", db.column()),
        ("constraint", db.constraint()),
    ] {
        if let Some(name) = name {
            let _ = write!(text, ", {kind} {name}");
        }
    }
    text + ")"
}
