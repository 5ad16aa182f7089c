//! The file: how it is created, checked, opened and closed.

use std::{
    fs::OpenOptions,
    io::ErrorKind,
    ops::{Deref, DerefMut},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use thiserror::Error;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// A file with the current schema. It is closed after the last clone, and the last connection, is dropped.
#[derive(Debug, Clone)]
pub struct SqliteFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    timeout: Duration,
}

/// A connection to the file. It keeps the file open.
pub(crate) struct FileConnection {
    connection: SqliteConnection,
    /// Dropped after the connection.
    _file: SqliteFile,
}

/// The file cannot be used.
#[derive(Debug, Error)]
pub enum SqliteFileError {
    /// The file cannot be created, read or written.
    #[error("{path}: {reason}")]
    Unavailable {
        /// The file.
        path: PathBuf,
        /// What failed, and what to do.
        reason: String,
    },
}

impl SqliteFile {
    /// Opens a file, or creates it with mode 0600, and brings its schema up to date. The timeout applies to each wait
    /// for another connection.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        let unavailable = |reason: String| SqliteFileError::Unavailable { path: path.to_owned(), reason };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unavailable(error.to_string())),
        }
        let file = Self(Arc::new(Inner { path: path.to_owned(), timeout }));
        let mut connection = file.connect()?;
        connection.run_pending_migrations(MIGRATIONS).map_err(|error| unavailable(error.to_string()))?;
        Ok(file)
    }

    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> Result<FileConnection, SqliteFileError> {
        let Inner { path, timeout } = &*self.0;
        let unavailable = |reason: String| SqliteFileError::Unavailable { path: path.clone(), reason };
        let url = path.to_str().ok_or_else(|| unavailable("the path is not UTF-8".to_owned()))?;
        let mut connection = SqliteConnection::establish(url).map_err(|error| unavailable(error.to_string()))?;
        let settings = format!(
            "PRAGMA busy_timeout = {}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
            timeout.as_millis()
        );
        connection.batch_execute(&settings).map_err(|error| unavailable(error.to_string()))?;
        Ok(FileConnection { connection, _file: self.clone() })
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
