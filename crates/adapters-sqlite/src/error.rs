//! Failures of SQLite. Diesel passes on their messages, but not their codes.

use animal_store_app::ports::StoreFailure;
use diesel::result::{DatabaseErrorKind, Error};

use crate::SqliteFileError;

// The messages of `sqlite3_errstr` that decide about something.
pub(crate) const NOT_A_DATABASE: &str = "file is not a database";
pub(crate) const FULL: &str = "database or disk is full";
pub(crate) const LOCKED: &str = "database is locked";
pub(crate) const READ_ONLY: &str = "attempt to write a readonly database";
pub(crate) const CANNOT_OPEN: &str = "unable to open database file";

/// Whether SQLite found a page or a schema that is not valid.
pub(crate) fn is_corrupt(message: &str) -> bool {
    message.contains(NOT_A_DATABASE)
        || message.contains("database disk image is malformed")
        || message.contains("malformed database schema")
}

/// Whether the failure is about one row, which breaks a constraint. SQLite has undone the statement and goes on with
/// the transaction; after other failures, it may have rolled back the transaction.
pub(crate) fn is_about_one_row(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound
            | Error::DatabaseError(
                DatabaseErrorKind::UniqueViolation
                    | DatabaseErrorKind::CheckViolation
                    | DatabaseErrorKind::NotNullViolation
                    | DatabaseErrorKind::ForeignKeyViolation,
                _
            )
    )
}

/// `DeserializationError`: a value is not valid.
pub(crate) fn read_error(error: Error) -> StoreFailure {
    match error {
        Error::DeserializationError(cause) => StoreFailure::Corrupt(cause),
        error => storage_error(&error.to_string()),
    }
}

pub(crate) fn storage_error(message: &str) -> StoreFailure {
    let cause = message.to_owned().into();
    if is_corrupt(message) { StoreFailure::Corrupt(cause) } else { StoreFailure::Unavailable(cause) }
}

impl From<SqliteFileError> for StoreFailure {
    fn from(error: SqliteFileError) -> Self {
        Self::Unavailable(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_constraint_is_about_one_row() {
        let error = |kind| Error::DatabaseError(kind, Box::new("x".to_owned()));
        for kind in [DatabaseErrorKind::UniqueViolation, DatabaseErrorKind::CheckViolation] {
            assert!(is_about_one_row(&error(kind)));
        }
        assert!(!is_about_one_row(&error(DatabaseErrorKind::Unknown)));
    }
}
