//! The file: how it is created, checked, opened and closed.
//!
//! **Problem.** SQLite opens whatever a path names: it creates a missing file and removes the log (`-wal`) beside it, in
//! which the last pets may be. It goes on with a file that was moved, whose pets nobody finds any more. A file can also
//! be of another program or of another release, and several processes may use it at once.
//!
//! **Invariant.** No connection creates a file: only the first start does, with mode 0600, and never beside a log. A file
//! that fails a check is not changed. While the path names another file than the one that was opened, or the log was
//! replaced, no commit is made and no API key is looked up. Reading changes no byte.
//!
//! **Proof.** `tests/sqlite/files.rs` (each check), `moved.rs` (moved files and lost ones), `migrations.rs`.

mod connection;
mod identity;

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind},
    ops::{Deref, DerefMut},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf, absolute},
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use animal_store_app::SchemaComparison;
use diesel::{SqliteConnection, connection::SimpleConnection};
use prometheus_client::registry::Registry;

use self::{
    connection::{configure, establish},
    identity::Identity,
};
use crate::{
    SqliteFileError,
    metrics::Count,
    scalar::{number, text},
    schema::{self, APPLICATION_ID},
};

/// The owner may read and write.
const MODE: u32 = 0o600;

/// An open file with the current schema. It is closed after the last clone, and the last connection, is dropped.
#[derive(Clone)]
pub struct SqliteFile(Arc<OpenFile>);

/// A connection to the file. It keeps the file open.
pub(crate) struct FileConnection {
    connection: SqliteConnection,
    /// Dropped after the connection.
    _file: SqliteFile,
}

/// How the connections to a file use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
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
        Self::open_with(path, timeout, Access::Write, |_| Ok(()))
    }

    /// Opens an existing file with the current schema, without a permission to write it.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open_read_only(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        Self::open_with(path, timeout, Access::Read, |_| Ok(()))
    }

    /// Opens an existing file, and brings its schema up to date. Returns the migrations that were run as well.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn migrate(path: &Path, timeout: Duration) -> Result<(Self, Vec<String>), SqliteFileError> {
        let mut migrations = Vec::new();
        let file = Self::open_with(path, timeout, Access::Write, |connection| {
            migrations = schema::migrate(path, connection)?;
            Ok(())
        })?;
        Ok((file, migrations))
    }

    /// Like [`migrate`](Self::migrate), and creates the file with mode 0600 if neither it nor its log exists.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn create_or_migrate(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        if matches!(check_exists(path), Err(SqliteFileError::Missing { .. })) {
            create(path)?;
        }
        Self::migrate(path, timeout).map(|(file, _)| file)
    }

    /// Returns the migrations that are pending. Changes nothing.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn pending(path: &Path) -> Result<Vec<String>, SqliteFileError> {
        check_exists(path)?;
        let mut connection = connect(path, Access::Read, Duration::ZERO)?;
        check_program(path, &mut connection)?;
        Ok(schema::check(path, &mut connection)?.pending)
    }

    fn open_with(
        path: &Path,
        timeout: Duration,
        access: Access,
        prepare: impl FnOnce(&mut SqliteConnection) -> Result<(), SqliteFileError>,
    ) -> Result<Self, SqliteFileError> {
        check_exists(path)?;
        let mut connection = connect(path, access, timeout)?;
        check_program(path, &mut connection)?;
        if access == Access::Write {
            keep_log(path, &mut connection)?;
        }
        prepare(&mut connection)?;
        let SchemaComparison { pending, newer, .. } = schema::check(path, &mut connection)?;
        if !pending.is_empty() {
            return Err(SqliteFileError::Pending { path: path.to_owned(), migrations: pending });
        }
        if !newer.is_empty() {
            let migrations = newer.join(", ");
            tracing::warn!(file = %path.display(), migrations, "a newer program has expanded the schema");
        }
        let in_place = Count::default();
        in_place.set(1);
        let identity = Identity::of(path, access).map_err(|error| unavailable(path, &error))?;
        let (path, connection) = (path.to_owned(), Mutex::new(connection));
        Ok(Self(Arc::new(OpenFile { path, access, timeout, identity, in_place, _connection: connection })))
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
        let error = || SqliteFileError::Replaced { path: path.clone() };
        match (was_in_place, is_in_place) {
            (true, false) => tracing::error!("{}", error()),
            (false, true) => tracing::info!(file = %path.display(), "the file is back"),
            _ => {}
        }
        if is_in_place { Ok(()) } else { Err(error()) }
    }

    /// Whether connections may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.0.access == Access::Write
    }

    /// Longest wait for another process.
    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Returns an error about this file.
    pub(crate) fn unavailable(&self, reason: &impl ToString) -> SqliteFileError {
        unavailable(self.path(), reason)
    }

    /// Opens a connection to the file that was opened, and to no other.
    pub(crate) fn connect(&self) -> Result<FileConnection, SqliteFileError> {
        self.check_in_place()?;
        let mut connection = establish(self.path(), self.0.access)?;
        // Reading another file with this log could write the log into that file.
        self.check_in_place()?;
        configure(self.path(), &mut connection, self.0.timeout)?;
        Ok(FileConnection { connection, _file: self.clone() })
    }
}

/// Opens a connection to an existing file that no other part of this program uses.
pub(crate) fn connect_once(path: &Path) -> Result<SqliteConnection, SqliteFileError> {
    connect(path, Access::Write, Duration::ZERO)
}

fn connect(path: &Path, access: Access, timeout: Duration) -> Result<SqliteConnection, SqliteFileError> {
    let mut connection = establish(path, access)?;
    configure(path, &mut connection, timeout)?;
    Ok(connection)
}

/// Returns the path of the log, which is beside the file that a symbolic link names.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    let target = fs::canonicalize(path).or_else(|_| fs::read_link(path).map(|link| folder_of(path).join(link)));
    let mut log = target.unwrap_or_else(|_| path.to_owned()).into_os_string();
    log.push("-wal");
    log.into()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Distinguishes a file that was never there from one that was moved away from its log.
fn check_exists(path: &Path) -> Result<(), SqliteFileError> {
    let log = log_path(path);
    match path.try_exists() {
        Ok(false) if log.exists() => Err(SqliteFileError::Lost { path: path.to_owned(), log }),
        Ok(false) if !folder_of(path).is_dir() => Err(SqliteFileError::NoFolder { path: path.to_owned() }),
        Ok(false) => Err(SqliteFileError::Missing { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Creates an empty file with mode 0600, which SQLite also gives to the files beside it.
pub(crate) fn create(path: &Path) -> Result<(), SqliteFileError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
    // The umask may have removed permissions of the owner.
    let created = file.and_then(|file| file.set_permissions(Permissions::from_mode(MODE)));
    match created.and_then(|()| File::open(folder_of(&absolute(path)?))?.sync_all()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(creation_error(path, &error)),
        // Another process has just created it, or it is a symbolic link to a missing file.
        _ => Ok(()),
    }
}

fn creation_error(path: &Path, error: &io::Error) -> SqliteFileError {
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => SqliteFileError::NotWritable { path, reason },
        ErrorKind::StorageFull => SqliteFileError::Full { path },
        _ => SqliteFileError::Unavailable { path, reason },
    }
}

/// Refuses the database of another program. An empty file is ours.
fn check_program(path: &Path, connection: &mut SqliteConnection) -> Result<(), SqliteFileError> {
    let mut query = |query| {
        let result = number(connection, query);
        result.map_err(|error| SqliteFileError::from_message(path, &error.to_string()))
    };
    // In this order: another process may run the first migration, which sets the id and creates the tables, meanwhile.
    let (objects, application_id) = (query("SELECT count(*) FROM sqlite_schema")?, query("PRAGMA application_id")?);
    if application_id == APPLICATION_ID || (application_id, objects) == (0, 0) {
        Ok(())
    } else {
        Err(SqliteFileError::OtherProgram { path: path.to_owned() })
    }
}

/// Switches the file to a log, and opens the log. Fails if another process keeps its lock, or without a permission.
fn keep_log(path: &Path, connection: &mut SqliteConnection) -> Result<(), SqliteFileError> {
    let kept = text(connection, "PRAGMA journal_mode = WAL");
    let writable = kept.and_then(|_| connection.batch_execute("BEGIN IMMEDIATE; ROLLBACK;"));
    writable.map_err(|error| SqliteFileError::from_message(path, &error.to_string()))
}

fn unavailable(path: &Path, reason: &impl ToString) -> SqliteFileError {
    SqliteFileError::Unavailable { path: path.to_owned(), reason: reason.to_string() }
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
