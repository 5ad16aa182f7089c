//! What PostgreSQL and its driver say, in words for the log: never a value of a row, never a secret.

use std::{error::Error, fmt::Write};

use animal_store_app::ports::StorageError;
use thiserror::Error;
use tokio_postgres::error::SqlState;

/// Why there is no connection, or none any more.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    #[error("{}", describe(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Diesel(#[from] diesel::result::Error),
    #[error("{0}")]
    SetUp(#[from] diesel::ConnectionError),
    #[error("there was no answer in time")]
    Silent,
    #[error("the server closed the connection")]
    Closed,
    #[error("the server answered what it was not asked")]
    Unexpected,
    #[error("the encoding of the database is {0}: names need UTF8")]
    NotUtf8(String),
}

impl ConnectionError {
    /// As far as a client can tell: a server may refuse a connection because it is encrypted, or because it fails at it.
    pub(crate) fn may_be_about_encryption(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        error.code().is_none_or(|code| *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
    }
}

/// Why nothing was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no connection to PostgreSQL")]
pub(crate) struct NotConnected;

impl From<NotConnected> for StorageError {
    fn from(error: NotConnected) -> Self {
        Self::Unavailable(error.into())
    }
}

/// The message and the SQLSTATE, with what they are about. The detail is left out: it may repeat the row.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else { return chain(error) };
    let mut text = format!("{} (SQLSTATE {}", db.message(), db.code().code());
    for (kind, name) in [("table", db.table()), ("column", db.column()), ("constraint", db.constraint())] {
        if let Some(name) = name {
            let _ = write!(text, ", {kind} {name}");
        }
    }
    text + ")"
}

fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

/// A read that failed.
pub(crate) fn of_read(error: diesel::result::Error) -> StorageError {
    match error {
        diesel::result::Error::DeserializationError(cause) => StorageError::Corrupt(cause),
        error => StorageError::Unavailable(format!("PostgreSQL: {error}").into()),
    }
}
