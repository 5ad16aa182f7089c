//! The way from asynchronous code to the file.
//!
//! **Problem.** Diesel is synchronous, a statement may wait for the disk, and a connection whose statement failed or
//! panicked may have an open transaction.
//!
//! **Invariant.** Statements run on threads for blocking work ([`Session`]). A failed connection is replaced. A change
//! is one transaction that holds the write lock from its beginning, so that nothing it has read can change; a file that
//! was moved gets no commit.
//!
//! **Proof.** `tests/sqlite/moved.rs`, `outcomes.rs`, `reads.rs`; the unit tests below.

use std::{
    mem,
    path::Path,
    time::{Duration, Instant},
};

use animal_store_app::ports::{Cause, StoreFailure};
use diesel::{SqliteConnection, connection::SimpleConnection, prelude::*, result::Error};
use thiserror::Error;
use tokio::task::{JoinError, spawn_blocking};

use crate::{
    SqliteFile, SqliteFileError,
    file::{FULL, LOCKED, is_corrupt},
};

/// An access to the file failed. The messages do not name the file, except that of [`File`](Self::File).
#[derive(Debug, Error)]
pub(crate) enum AccessError {
    /// The file cannot be opened, or is not in place.
    #[error(transparent)]
    File(#[from] SqliteFileError),
    /// A statement failed. `DeserializationError`: a value is not valid.
    #[error(transparent)]
    Statement(#[from] Error),
    /// The commit failed. If the log was written and only its synchronization failed, the change can exist after all.
    #[error("{0}")]
    Commit(Error),
    /// The work panicked.
    #[error(transparent)]
    Panic(#[from] JoinError),
}

impl AccessError {
    /// Returns what the error means for a port. The cause names the file.
    pub(crate) fn failure(&self, path: &Path) -> StoreFailure {
        let mut message = self.to_string();
        if let Self::Statement(Error::DeserializationError(error)) = self
            && let Some(source) = error.source()
        {
            message = format!("{message}: {source}");
        }
        let cause = match self {
            Self::File(_) => message.clone(),
            _ => format!("{}: {message}", path.display()),
        };
        match self {
            Self::Commit(_) => StoreFailure::OutcomeUnknown(cause.into()),
            Self::Statement(Error::DeserializationError(_)) => StoreFailure::Corrupt(cause.into()),
            Self::Statement(_) if is_corrupt(&message) => StoreFailure::Corrupt(cause.into()),
            _ => StoreFailure::Unavailable(cause.into()),
        }
    }
}

/// Returns the error of an invalid row.
pub(crate) fn corrupt(problem: impl Into<Cause>) -> Error {
    Error::DeserializationError(problem.into())
}

/// A connection that is opened when it is needed, and replaced after a failure.
pub(crate) struct Session {
    /// Closed before the file.
    connection: Option<SqliteConnection>,
    pub(crate) file: SqliteFile,
}

impl Session {
    pub(crate) fn new(file: &SqliteFile) -> Self {
        Self { file: file.clone(), connection: None }
    }

    /// Runs work on the connection, on the current thread.
    pub(crate) fn execute<T>(
        &mut self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        // A panic closes the connection.
        let mut connection = self.connection.take().map_or_else(|| self.file.connect(), Ok)?;
        let result = work(&mut connection)?;
        self.connection = Some(connection);
        Ok(result)
    }

    /// Runs work on a thread for blocking work.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Self) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let file = self.file.clone();
        let mut session = mem::replace(self, Self { file, connection: None });
        let (returned, result) = spawn_blocking(move || {
            let result = work(&mut session);
            (session, result)
        })
        .await?;
        *self = returned;
        Ok(result)
    }

    /// Reads one state of the file.
    pub(crate) async fn read<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, AccessError> {
        self.run(|session| session.execute(|connection| Ok(connection.transaction(work)?))).await?
    }

    /// Makes a change in one commit: all of it, or nothing if it fails, because the connection is closed then. It waits
    /// for the write lock until the timeout.
    pub(crate) async fn change<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, AccessError> {
        let file = self.file.clone();
        let change = move |connection: &mut SqliteConnection| {
            begin(connection, file.timeout())?;
            let result = work(connection)?;
            commit(&file, connection).map(|()| result)
        };
        self.run(|session| session.execute(change)).await?
    }
}

/// Commits, if the file is in place. A full disk refuses a part of the log before the end of the commit, so nothing is
/// stored. After another failure, such as one of fsync, the commit may be complete in the log: this process does not
/// see it, and a process that starts after a crash would.
pub(crate) fn commit(file: &SqliteFile, connection: &mut SqliteConnection) -> Result<(), AccessError> {
    file.check_in_place()?;
    connection.batch_execute("COMMIT").map_err(commit_error)
}

fn commit_error(error: Error) -> AccessError {
    if error.to_string().contains(FULL) { AccessError::Statement(error) } else { AccessError::Commit(error) }
}

/// Takes the write lock. SQLite's own waits grow to 100 ms, and another process may take the lock in each of them. So
/// each wait lasts 1 ms here.
pub(crate) fn begin(connection: &mut SqliteConnection, timeout: Duration) -> QueryResult<()> {
    let start = Instant::now();
    connection.batch_execute("PRAGMA busy_timeout = 1")?;
    loop {
        match connection.batch_execute("BEGIN IMMEDIATE") {
            Err(error) if error.to_string() == LOCKED && start.elapsed() < timeout => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use diesel::result::DatabaseErrorKind;

    use super::*;

    #[test]
    fn the_message_of_sqlite_decides_what_a_failure_means() {
        let error = |message: &str| Error::DatabaseError(DatabaseErrorKind::Unknown, Box::new(message.to_owned()));
        let failure = |error: AccessError| error.failure(Path::new("pets.db"));
        let damaged = failure(error("database disk image is malformed").into());
        assert!(matches!(damaged, StoreFailure::Corrupt(_)), "{damaged:?}");
        let StoreFailure::Unavailable(cause) = failure(error("disk I/O error").into()) else { panic!("unavailable") };
        assert_eq!(cause.to_string(), "pets.db: disk I/O error");
        let full = failure(commit_error(error("database or disk is full")));
        assert!(matches!(full, StoreFailure::Unavailable(_)), "{full:?}");
        let unknown = failure(commit_error(error("disk I/O error")));
        assert!(matches!(unknown, StoreFailure::OutcomeUnknown(_)), "{unknown:?}");
    }
}
