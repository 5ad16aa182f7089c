//! The file: how it is created, checked, opened and closed.
//!
//! **Problem.** SQLite opens whatever a path names: it creates a missing file and removes the log (`-wal`) beside it,
//! in which the last pets may be. It goes on with a file that was moved, whose pets nobody finds any more. A file can
//! also be of another program or of another release, and several processes may use it at once.
//!
//! **Invariant.** No connection creates a file: only the first start does, with mode 0600, and never beside a log. A
//! file that fails a check is not changed. While the path names another file than the one that was opened, or the log
//! was replaced, no commit is made and no API key is looked up. Reading changes no byte of the file and of its log;
//! SQLite may leave an empty log and its index (`-shm`) beside a file that had none.
//!
//! **Proof.** `tests/sqlite/files.rs` (each check), `moved.rs` (moved files and lost ones), `read_only.rs`,
//! `migrations.rs`, `kills.rs`.

mod connection;
mod identity;

use std::{
    fs::{File, OpenOptions, Permissions},
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

/// Greatest number of symbolic links that Linux follows.
const MAX_LINKS: usize = 40;

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

/// What to do with pending migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Refuse,
    Run,
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
        Ok(Self::open_with(path, timeout, Access::Write, Pending::Refuse)?.0)
    }

    /// Opens an existing file with the current schema, without a permission to write it.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open_read_only(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        Ok(Self::open_with(path, timeout, Access::Read, Pending::Refuse)?.0)
    }

    /// Opens an existing file, and brings its schema up to date. Returns the migrations that were run as well.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn migrate(path: &Path, timeout: Duration) -> Result<(Self, Vec<String>), SqliteFileError> {
        Self::open_with(path, timeout, Access::Write, Pending::Run)
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
        Ok(connect_checked(path, Access::Read, Duration::ZERO)?.1.pending)
    }

    fn open_with(
        path: &Path,
        timeout: Duration,
        access: Access,
        migrations: Pending,
    ) -> Result<(Self, Vec<String>), SqliteFileError> {
        let before = Identity::of(path, access).ok();
        // A connection that may write would write the log into a file that is refused, and remove the log.
        let (checked, compared) = match connect_checked(path, Access::Read, timeout) {
            // A crash may have left a rollback journal, which only a connection that may write can apply.
            Err(SqliteFileError::NotWritable { .. }) if access == Access::Write => {
                connect_checked(path, access, timeout)?
            }
            checked => checked?,
        };
        let SchemaComparison { pending, newer, .. } = compared;
        if !pending.is_empty() && migrations == Pending::Refuse {
            return Err(SqliteFileError::Pending { path: path.to_owned(), migrations: pending });
        }
        if !newer.is_empty() {
            let migrations = newer.join(", ");
            tracing::warn!(file = %path.display(), migrations, "a newer program has expanded the schema");
        }
        let mut connection = match access {
            Access::Read => checked,
            Access::Write => connect_to_write(path, timeout)?,
        };
        let identity = Identity::of(path, access).map_err(|error| unavailable(path, &error))?;
        if !before.is_some_and(|before| identity.has_file_of(&before)) {
            return Err(SqliteFileError::Replaced { path: path.to_owned() });
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

/// Returns the path of the log, which is beside the file that a symbolic link names, even if that file is missing.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = target.read_link() else { break };
        target = folder_of(&target).join(link);
    }
    let mut log = target.into_os_string();
    log.push("-wal");
    log.into()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that the file exists and that this program can use it.
fn connect_checked(
    path: &Path,
    access: Access,
    timeout: Duration,
) -> Result<(SqliteConnection, SchemaComparison), SqliteFileError> {
    check_exists(path)?;
    let mut connection = connect(path, access, timeout)?;
    check_program(path, &mut connection)?;
    let compared = schema::check(path, &mut connection)?;
    Ok((connection, compared))
}

/// Distinguishes a file that was never there from one that was moved away from its log. SQLite removes the log beside
/// an empty file.
fn check_exists(path: &Path) -> Result<(), SqliteFileError> {
    // Before the size of the file: a first start writes the log after the file.
    let log = log_path(path);
    let log_size = log.metadata().map(|log| log.len());
    match (path.metadata(), log_size) {
        (Ok(file), _) if file.is_dir() => Err(SqliteFileError::IsFolder { path: path.to_owned() }),
        (Ok(file), Ok(1..)) if file.len() == 0 => Err(SqliteFileError::Lost { path: path.to_owned(), log }),
        (Err(error), log_size) if error.kind() == ErrorKind::NotFound => Err(match log_size {
            Ok(_) => SqliteFileError::Lost { path: path.to_owned(), log },
            Err(_) if !folder_of(path).is_dir() => SqliteFileError::NoFolder { path: path.to_owned() },
            Err(_) => SqliteFileError::Missing { path: path.to_owned() },
        }),
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
fn connect_to_write(path: &Path, timeout: Duration) -> Result<SqliteConnection, SqliteFileError> {
    let mut connection = connect(path, Access::Write, timeout)?;
    let kept = text(&mut connection, "PRAGMA journal_mode = WAL");
    // BEGIN IMMEDIATE alone succeeds without a permission to write.
    let write = format!("BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; ROLLBACK;");
    let writable = kept.and_then(|_| connection.batch_execute(&write));
    writable.map_err(|error| SqliteFileError::from_message(path, &error.to_string()))?;
    Ok(connection)
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
