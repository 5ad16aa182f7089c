//! The file: how it is created, checked, opened and closed.
//!
//! **Problem.** SQLite opens a file without its log (`-wal`) silently, as it was before the last pets. The file can
//! also be read-only, damaged, of another program or of a newer release, and several processes may use it at once.
//!
//! **Invariant.** No request is served from a file that fails a check. A file that was closed is complete without a
//! log; a file that was not closed is opened only with its log. The checks do not depend on the number of pets. A file
//! is created with mode 0600. Several processes may open and close it at any moment.
//!
//! **Proof.** `tests/sqlite/files.rs` (each check), `logs.rs` (lost logs, concurrent starts and ends), `migrations.rs`.

mod checks;
mod connection;
mod creation;
mod identity;
mod log;
mod open_file;

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    sync::Arc,
    time::Duration,
};

use diesel::SqliteConnection;

pub(crate) use self::{checks::check_contents, log::log_path};
use self::{connection::establish, creation::create_if_missing, open_file::OpenFile};
use crate::{SqliteFileError, schema::migrate};

/// An open file with the current schema. It is closed after the last clone, and the last connection, is dropped.
#[derive(Clone)]
pub struct SqliteFile(Arc<OpenFile>);

/// A connection to the file. It keeps the file open.
pub(crate) struct FileConnection {
    connection: SqliteConnection,
    /// Dropped after the connection.
    _file: SqliteFile,
}

impl SqliteFile {
    /// Opens a file, or creates it with mode 0600, and brings its schema up to date. The timeout applies to each wait
    /// for another process.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        create_if_missing(path)?;
        let mut file = OpenFile::open(path, timeout)?;
        file.with_connection(migrate)?;
        file.with_connection(check_contents)?;
        Ok(Self(Arc::new(file)))
    }

    /// Opens a file as it is, for an examination: without the checks of its contents, and without migrations.
    pub(crate) fn open_unchecked(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        OpenFile::open(path, timeout).map(|file| Self(Arc::new(file)))
    }

    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fails if the file was removed or replaced since it was opened: what this process writes is lost then.
    pub(crate) fn check_in_place(&self) -> Result<(), SqliteFileError> {
        if self.0.is_in_place() { Ok(()) } else { Err(SqliteFileError::Replaced { path: self.path().to_owned() }) }
    }

    /// Whether another process has the file open.
    pub(crate) fn is_open_elsewhere(&self) -> bool {
        self.0.is_open_elsewhere()
    }

    /// Longest wait for another process.
    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout()
    }

    /// Returns an error about this file.
    pub(crate) fn unavailable(&self, reason: &impl ToString) -> SqliteFileError {
        SqliteFileError::Unavailable { path: self.path().to_owned(), reason: reason.to_string() }
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> Result<FileConnection, SqliteFileError> {
        let connection = establish(self.path(), self.0.timeout())?;
        Ok(FileConnection { connection, _file: self.clone() })
    }
}

impl std::fmt::Debug for SqliteFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SqliteFile").field(&self.path()).finish()
    }
}

impl Deref for FileConnection {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for FileConnection {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
