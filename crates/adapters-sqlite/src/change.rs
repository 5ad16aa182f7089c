//! Access to the file from asynchronous code: Diesel is synchronous, so each access runs on a thread for blocking work.
//! A change is one transaction that holds the write lock from its beginning, so that nothing it has read can change.

use std::{
    fmt,
    path::Path,
    time::{Duration, Instant},
};

use animal_store_app::ports::Cause;
use diesel::{SqliteConnection, connection::SimpleConnection, result::Error};
use tokio::task::spawn_blocking;

use crate::{
    SqliteFile, SqliteFileError,
    error::{FULL, LOCKED, is_corrupt},
};

/// An access to the file failed. `R` is the reason for which the caller's work rejected the change.
#[derive(Debug)]
pub(crate) enum AccessError<R> {
    /// The file cannot be opened.
    File(SqliteFileError),
    /// A statement failed. Nothing was changed.
    Statement(Error),
    /// The commit failed. If the log was written and only its synchronization failed, the change can exist after all.
    Commit(Error),
    /// A row or a page is not valid. Nothing was changed.
    Corrupt(String),
    /// The caller's work rejected the change. Nothing was changed.
    Refused(R),
    /// The thread ended. Nothing was changed.
    Thread(Cause),
}

/// Describes the failure, without the file. A rejection has no description here.
impl<R> fmt::Display for AccessError<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(formatter),
            Self::Statement(error) | Self::Commit(error) => error.fmt(formatter),
            Self::Corrupt(reason) => reason.fmt(formatter),
            Self::Refused(_) => formatter.write_str("the caller's work rejected the change"),
            Self::Thread(error) => error.fmt(formatter),
        }
    }
}

impl<R> From<Error> for AccessError<R> {
    fn from(error: Error) -> Self {
        match error {
            Error::DeserializationError(cause) => Self::Corrupt(cause.to_string()),
            error if is_corrupt(&error.to_string()) => Self::Corrupt(error.to_string()),
            error => Self::Statement(error),
        }
    }
}

impl<R> From<SqliteFileError> for AccessError<R> {
    fn from(error: SqliteFileError) -> Self {
        Self::File(error)
    }
}

/// Runs work on a thread for blocking work.
pub(crate) async fn run_blocking<T: Send + 'static, R: Send + 'static>(
    work: impl FnOnce() -> Result<T, AccessError<R>> + Send + 'static,
) -> Result<T, AccessError<R>> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(AccessError::Thread(error.into())))
}

/// Makes a change in one commit: all of it, or nothing if it fails. It waits for the write lock until the timeout. A
/// file that was moved gets no commit.
pub(crate) fn change<T, R>(
    file: &SqliteFile,
    connection: &mut SqliteConnection,
    work: impl FnOnce(&mut SqliteConnection) -> Result<T, AccessError<R>>,
) -> Result<T, AccessError<R>> {
    begin(connection, file.timeout())?;
    match work(connection).and_then(|result| Ok(file.check_in_place().map(|()| result)?)) {
        Ok(result) => match commit(connection) {
            Ok(()) => Ok(result),
            // A full disk refuses a part of the log before the end of the commit.
            Err(error) if error.to_string().contains(FULL) => Err(AccessError::Statement(error)),
            Err(error) => Err(AccessError::Commit(error)),
        },
        Err(error) => {
            // If that fails, SQLite has rolled back already.
            let _ = connection.batch_execute("ROLLBACK");
            Err(error)
        }
    }
}

/// Commits. After a failure nothing stays open.
fn commit(connection: &mut SqliteConnection) -> Result<(), Error> {
    connection.batch_execute("COMMIT").inspect_err(|_| {
        // If that fails, SQLite has rolled back already.
        let _ = connection.batch_execute("ROLLBACK");
    })
}

/// Takes the write lock. SQLite's own waits grow to 100 ms, and another process may take the lock in each of them. So
/// each wait lasts 1 ms here.
pub(crate) fn begin(connection: &mut SqliteConnection, timeout: Duration) -> Result<(), Error> {
    let start = Instant::now();
    connection.batch_execute("PRAGMA busy_timeout = 1")?;
    loop {
        match connection.batch_execute("BEGIN IMMEDIATE") {
            Err(error) if is_locked(&error) && start.elapsed() < timeout => {}
            result => return result,
        }
    }
}

fn is_locked(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(_, information) if information.message() == LOCKED)
}

/// What a failed access means for a port.
pub(crate) enum Failure<R> {
    Unavailable(Cause),
    OutcomeUnknown(Cause),
    Corrupt(Cause),
    Refused(R),
}

impl<R> AccessError<R> {
    /// Returns the meaning of the error. Causes name the file.
    pub(crate) fn into_failure(self, path: &Path) -> Failure<R> {
        let described = match &self {
            Self::File(error) => error.to_string(),
            error => format!("{}: {error}", path.display()),
        };
        match self {
            Self::File(_) | Self::Statement(_) | Self::Thread(_) => Failure::Unavailable(described.into()),
            Self::Commit(_) => Failure::OutcomeUnknown(described.into()),
            Self::Corrupt(_) => Failure::Corrupt(described.into()),
            Self::Refused(reason) => Failure::Refused(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use diesel::result::DatabaseErrorKind;

    use super::*;

    #[test]
    fn the_message_of_sqlite_separates_damage_and_locks_from_other_failures() {
        for (message, is_damage, is_lock) in [
            ("database disk image is malformed", true, false),
            ("database is locked", false, true),
            ("disk I/O error", false, false),
        ] {
            let error = Error::DatabaseError(DatabaseErrorKind::Unknown, Box::new(message.to_owned()));
            assert_eq!(is_locked(&error), is_lock, "{message}");
            assert_eq!(matches!(AccessError::<()>::from(error), AccessError::Corrupt(_)), is_damage, "{message}");
        }
    }
}
