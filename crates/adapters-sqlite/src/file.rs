//! The file: how it is created, checked, opened and closed.
//!
//! **Problem.** SQLite opens whatever a path names: it creates a missing file and removes the log (`-wal`) beside it,
//! which may contain the last pets. It goes on with a file that was moved, so pets are added to a lost file. A file can
//! also be of another program or of another release, and several processes may use it at once.
//!
//! **Invariant.** No connection creates a file: only the first start does, with mode 0600, and never beside a log. A
//! file that fails a check is not changed. While the path names another file than the one that was opened, or the log
//! was replaced, no commit is made and no API key is looked up. Reading changes no byte of the file and of its log;
//! SQLite may leave an empty log and its index (`-shm`) beside a file that had none.
//!
//! **Proof.** `tests/sqlite/files.rs` (each check), `moved.rs` (moved files and lost ones), `read_only.rs`,
//! `migrations.rs`, `kills.rs`.

mod checks;
mod connection;
mod error;
mod identity;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use animal_store_adapter_kit::{SchemaComparison, metrics::Count};
use diesel::SqliteConnection;
use prometheus_client::registry::Registry;

pub use self::error::SqliteFileError;
pub(crate) use self::{
    checks::create,
    connection::connect_once,
    error::{FULL, LOCKED, is_corrupt},
    identity::log_path,
};
use self::{
    checks::{check_exists, connect_checked, connect_to_write},
    connection::{configure, establish},
    identity::Identity,
};
use crate::schema;

/// An open file with the current schema. It is closed after the last clone, and the last connection, is dropped.
#[derive(Clone)]
pub struct SqliteFile(Arc<OpenFile>);

/// How a process uses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Writes, and runs pending migrations.
    Migrate,
}

struct OpenFile {
    path: PathBuf,
    access: Access,
    timeout: Duration,
    identity: Identity,
    /// 1 while the path names this file.
    in_place: Count,
    /// Open as long as the file, so that SQLite keeps the log.
    _connection: Mutex<SqliteConnection>,
}

impl SqliteFile {
    /// Opens an existing file with the current schema. The timeout applies to each wait for another process.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        Ok(Self::open_with(path, timeout, Access::Write)?.0)
    }

    /// Opens an existing file with the current schema, without a permission to write it.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open_read_only(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        Ok(Self::open_with(path, timeout, Access::Read)?.0)
    }

    /// Opens an existing file, and brings its schema up to date. Returns the migrations that were run as well.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn migrate(path: &Path, timeout: Duration) -> Result<(Self, Vec<String>), SqliteFileError> {
        Self::open_with(path, timeout, Access::Migrate)
    }

    /// Like [`migrate`](Self::migrate), and creates the file with mode 0600 if neither it nor its log exists.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn create_or_migrate(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        if matches!(check_exists(path), Err(SqliteFileError::Missing(_))) {
            create(path)?;
        }
        Ok(Self::migrate(path, timeout)?.0)
    }

    /// Returns the migrations that are pending. Changes nothing.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn pending(path: &Path) -> Result<Vec<String>, SqliteFileError> {
        Ok(connect_checked(path, Access::Read, Duration::ZERO)?.1.pending)
    }

    fn open_with(path: &Path, timeout: Duration, access: Access) -> Result<(Self, Vec<String>), SqliteFileError> {
        let start = Instant::now();
        loop {
            match Self::try_open(path, timeout, access) {
                // SQLite does not always wait for a process that creates the file.
                Err(SqliteFileError::Locked(_)) if start.elapsed() < timeout => {}
                opened => return opened,
            }
        }
    }

    fn try_open(path: &Path, timeout: Duration, access: Access) -> Result<(Self, Vec<String>), SqliteFileError> {
        let before = Identity::of(path, access).ok();
        // A connection that may write would write the log into a file that is refused, and remove the log.
        let (checked, compared) = match connect_checked(path, Access::Read, timeout) {
            // A crash may have left a rollback journal, which only a connection that may write can apply.
            Err(SqliteFileError::NotWritable(..)) if access != Access::Read => connect_checked(path, access, timeout)?,
            checked => checked?,
        };
        let SchemaComparison { pending, newer, is_new, .. } = compared;
        // Another process is creating it. One that is empty was left by a start that was killed.
        let is_created = access != Access::Read && is_new && path.metadata().is_ok_and(|file| file.len() > 0);
        if !pending.is_empty() && access != Access::Migrate && !is_created {
            return Err(SqliteFileError::Pending(path.to_owned(), pending));
        }
        if !newer.is_empty() {
            let migrations = newer.join(", ");
            tracing::warn!(file = %path.display(), migrations, "a newer program has expanded the schema");
        }
        let mut connection = match access {
            Access::Read => checked,
            Access::Write | Access::Migrate => connect_to_write(path, timeout)?,
        };
        let identity = Identity::of(path, access).map_err(|error| SqliteFileError::of(path, &error))?;
        if !before.is_some_and(|before| identity.has_file_of(&before)) {
            return Err(SqliteFileError::Replaced(path.to_owned()));
        }
        let done = if pending.is_empty() { pending } else { schema::migrate(path, &mut connection)? };
        let in_place = Count::default();
        in_place.set(1);
        let (path, connection) = (path.to_owned(), Mutex::new(connection));
        let file = OpenFile { path, access, timeout, identity, in_place, _connection: connection };
        Ok((Self(Arc::new(file)), done))
    }

    /// Registers the metric of the file, with the prefix `sqlite`.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let help = "1 while storage.sqlite.path names the file that was opened; 0: creates and lookups get 503";
        registry.sub_registry_with_prefix("sqlite").register("file_in_place", help, self.0.in_place.clone());
    }

    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Fails while the file is moved, removed or replaced, or its log is: what this process wrote would be lost.
    pub(crate) fn check_in_place(&self) -> Result<(), SqliteFileError> {
        let OpenFile { path, access, identity, in_place, .. } = &*self.0;
        let is_in_place = Identity::of(path, *access).is_ok_and(|current| current == *identity);
        let was_in_place = in_place.inner().swap(is_in_place.into(), Ordering::Relaxed) == 1;
        let error = || SqliteFileError::Replaced(path.clone());
        match (was_in_place, is_in_place) {
            (true, false) => tracing::error!("{}", error()),
            (false, true) => tracing::info!(file = %path.display(), "the file is back"),
            _ => {}
        }
        if is_in_place { Ok(()) } else { Err(error()) }
    }

    /// Whether connections may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.0.access != Access::Read
    }

    /// Longest wait for another process.
    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Opens a connection to the file that was opened, and to no other. It has to be closed before this is dropped.
    pub(crate) fn connect(&self) -> Result<SqliteConnection, SqliteFileError> {
        self.check_in_place()?;
        let mut connection = establish(self.path(), self.0.access)?;
        // Reading another file with this log could write the log into that file.
        self.check_in_place()?;
        configure(self.path(), &mut connection, self.0.timeout)?;
        Ok(connection)
    }
}

impl std::fmt::Debug for SqliteFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SqliteFile").field(&self.path()).finish()
    }
}
