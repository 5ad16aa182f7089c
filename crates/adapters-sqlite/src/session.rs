//! The way from asynchronous code to the file.
//!
//! **Problem.** Diesel is synchronous, a statement may wait for the disk, and a connection whose statement failed or
//! panicked may have an open transaction.
//!
//! **Invariant.** Statements run on threads for blocking work. A failed connection is replaced. A change is one
//! transaction that holds the write lock from its beginning, so that nothing it has read can change; a file that was
//! moved, or is no longer believed, gets no commit.
//!
//! **Proof.** `tests/sqlite/moved.rs`, `outcomes.rs`, `reads.rs`; the unit test below.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use diesel::{SqliteConnection, connection::SimpleConnection, prelude::*, result::Error};
use tokio::task::spawn_blocking;

use crate::{SqliteFile, SqliteFileError, error::Problem};

/// A connection that is opened when it is needed, and replaced after a failure.
#[derive(Clone)]
pub struct Session {
    /// Closed before the file.
    connection: Arc<Mutex<Option<SqliteConnection>>>,
    pub(crate) file: SqliteFile,
}

impl Session {
    pub(crate) fn new(file: &SqliteFile) -> Self {
        Self {
            connection: Arc::default(),
            file: file.clone(),
        }
    }

    /// Runs work on the connection, on the current thread.
    pub(crate) fn execute<T>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, Problem>,
    ) -> Result<T, SqliteFileError> {
        let mut kept = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let connection = match kept.take() {
            Some(connection) => Ok(connection),
            None => self.file.connect(),
        };
        let executed = connection.and_then(|mut connection| {
            // A panic closes the connection.
            let result = work(&mut connection)?;
            *kept = Some(connection);
            Ok(result)
        });
        executed.map_err(|problem| {
            // A file that was replaced can look damaged: its check names the real cause.
            let cause = match problem {
                Problem::Commit(_) => problem,
                _ => self.file.check().err().unwrap_or(problem),
            };
            cause.at(self.file.path())
        })
    }

    /// Runs work on a thread for blocking work.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, SqliteFileError> + Send + 'static,
    ) -> Result<T, SqliteFileError> {
        let session = self.clone();
        let done = spawn_blocking(move || work(&session)).await;
        done.unwrap_or_else(|panic| {
            Err(Problem::Unavailable(panic.to_string()).at(self.file.path()))
        })
    }

    /// Runs work on the connection, on a thread for blocking work.
    pub(crate) async fn run_on_connection<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteFile, &mut SqliteConnection) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, SqliteFileError> {
        self.run(|session| session.execute(|connection| work(&session.file, connection)))
            .await
    }

    /// Reads one state of the file, if it is in place and believed.
    pub(crate) async fn read<T: Send + 'static, E: Into<Problem>>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, SqliteFileError> {
        self.run_on_connection(|file, connection| {
            file.check()?;
            connection.transaction(|connection| work(connection).map_err(Into::into))
        })
        .await
    }

    /// Makes a change in one commit: all of it, or nothing if it fails, because the connection is closed then. It waits
    /// for the write lock until the timeout.
    pub(crate) async fn change<T: Send + 'static, E: Into<Problem>>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, SqliteFileError> {
        self.run_on_connection(|file, connection| change(file, connection, work))
            .await
    }

    /// Fails if no change can be made now. Writes nothing.
    pub(crate) async fn try_change(&self) -> Result<(), SqliteFileError> {
        self.change(|_| Ok::<_, Error>(())).await
    }
}

/// Makes a change in one commit. If it fails, the connection has to be closed.
pub(crate) fn change<T, E: Into<Problem>>(
    file: &SqliteFile,
    connection: &mut SqliteConnection,
    work: impl FnOnce(&mut SqliteConnection) -> Result<T, E>,
) -> Result<T, Problem> {
    begin(connection, file.timeout())?;
    let result = work(connection).map_err(Into::into)?;
    commit(file, connection)?;
    Ok(result)
}

/// Takes the write lock. SQLite's own waits grow to 100 ms, and another process may take the lock in each of them. So
/// each wait lasts 1 ms here.
pub(crate) fn begin(connection: &mut SqliteConnection, timeout: Duration) -> Result<(), Problem> {
    let start = Instant::now();
    connection.batch_execute("PRAGMA busy_timeout = 1")?;
    loop {
        match connection
            .batch_execute("BEGIN IMMEDIATE")
            .map_err(Problem::from)
        {
            Err(Problem::Locked) if start.elapsed() < timeout => {}
            begun => return begun,
        }
    }
}

/// Commits, if the file is in place and believed. A full disk refuses a part of the log before the end of the commit, so
/// nothing is stored. After another failure, such as one of fsync, the commit may be complete in the log: this process
/// does not see it, and a process that starts after a crash would.
pub(crate) fn commit(file: &SqliteFile, connection: &mut SqliteConnection) -> Result<(), Problem> {
    file.check()?;
    connection.batch_execute("COMMIT").map_err(commit_problem)
}

fn commit_problem(error: Error) -> Problem {
    let reason = error.to_string();
    match Problem::from(error) {
        Problem::Full => Problem::Full,
        _ => Problem::Commit(reason),
    }
}

#[cfg(test)]
mod tests {
    use diesel::result::DatabaseErrorKind;

    use super::*;

    #[test]
    fn only_a_full_disk_refuses_a_commit_with_a_known_outcome() {
        for (message, is_known) in [
            ("database or disk is full", true),
            ("disk I/O error", false),
        ] {
            let error =
                Error::DatabaseError(DatabaseErrorKind::Unknown, Box::new(message.to_owned()));
            assert_eq!(
                matches!(commit_problem(error), Problem::Full),
                is_known,
                "{message}"
            );
        }
    }
}
