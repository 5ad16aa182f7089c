//! The file: how it is created, checked, opened and closed.
//!
//! **Problem.** SQLite opens whatever a path names: it creates a missing file and removes the log (`-wal`) beside it,
//! which may contain the last pets. It goes on with a file that was moved, so pets are added to a lost file. A file can
//! also be of another program or of another release, another user can have planted it or its log, and several processes
//! may use it at once, each with a log of its own if the file has several names (hard links).
//!
//! **Invariant.** No connection creates a file: only the first start does, with mode 0600, and never beside a log. A
//! file that fails a check is not changed. While the path names another file than the one that was opened, or the file
//! or its log was overwritten, or the log or its index (`-shm`) was replaced, or one of them is no longer believed, or a
//! journal is beside the file, no commit is made and no API key is looked up. Reading changes no byte of the file and of
//! its log; SQLite may leave an empty log and its index beside a file that had none.
//!
//! **Proof.** `tests/sqlite/files.rs` (each check), `lost.rs`, `moved.rs`, `overwritten.rs`, `read_only.rs`,
//! `migrations.rs`, `kills.rs`.

mod checks;
mod connection;
mod header;
mod identity;
mod index;
mod log;
mod metrics;
mod mounts;
mod open;
mod space;

use std::{
    fmt, mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use diesel::SqliteConnection;
use prometheus_client::registry::Registry;

pub(crate) use self::{
    checks::{check_believed, check_writable, create, has_several_names},
    connection::connect,
    identity::log_path,
    mounts::mount_problem,
    space::{Disk, log_bytes},
};
use self::{
    checks::{check_exists, check_names, connect_checked},
    connection::{configure, establish},
    header::OpenHeader,
    identity::Identity,
    index::OpenLog,
    metrics::FileMetrics,
    open::open_in_time,
};
use crate::error::{Problem, SqliteFileError};

/// How a process uses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Reads an existing file with the current schema, without a permission to write it.
    Read,
    /// Writes an existing file with the current schema.
    Write,
    /// The same, but a file that is missing or empty is created.
    WriteOrCreate,
    /// Writes the file, and brings its schema up to date. Creates it with mode 0600 if neither it nor its log exists.
    Create,
}

/// An open file with the current schema. It is closed after the last clone, and the last connection, is dropped.
#[derive(Debug, Clone)]
pub struct SqliteFile(Arc<OpenFile>);

struct OpenFile {
    path: PathBuf,
    usage: FileUse,
    timeout: Duration,
    identity: Identity,
    header: OpenHeader,
    /// `None` if the file is only read.
    log: Option<OpenLog>,
    /// Whether the path named this file at the last check.
    in_place: AtomicBool,
    /// Open as long as the file, so that SQLite keeps the log.
    connection: Mutex<Option<SqliteConnection>>,
}

impl SqliteFile {
    /// Opens a file. The timeout applies to each wait for another process.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn open(path: &Path, usage: FileUse, timeout: Duration) -> Result<Self, SqliteFileError> {
        let is_empty = || path.metadata().map_or(true, |file| file.len() == 0);
        let may_create = usage == FileUse::WriteOrCreate;
        let usage = match usage {
            FileUse::WriteOrCreate if is_empty() => FileUse::Create,
            FileUse::WriteOrCreate => FileUse::Write,
            usage => usage,
        };
        let is_missing = || matches!(check_exists(path), Err(Problem::Missing));
        let created = if usage == FileUse::Create && is_missing() {
            create(path)
        } else {
            Ok(())
        };
        let mut opened = created.and_then(|()| open_in_time(path, usage, timeout));
        if may_create && matches!(opened, Err(Problem::Pending(_))) && is_empty() {
            // The journal of a process that was killed while it created the file has emptied it.
            opened = open_in_time(path, FileUse::Create, timeout);
        }
        if usage == FileUse::Create
            && let Some(problem) = mount_problem(path)
        {
            tracing::warn!(file = %path.display(), "{problem}");
        }
        opened
            .map(|opened| opened.file)
            .map_err(|problem| problem.at(path))
    }

    /// Brings the schema of an existing file up to date. Returns the migrations that were run.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn migrate(path: &Path, timeout: Duration) -> Result<Vec<String>, SqliteFileError> {
        let opened = open_in_time(path, FileUse::Create, timeout);
        opened
            .map(|opened| opened.migrations)
            .map_err(|problem| problem.at(path))
    }

    /// Returns the migrations that are pending. Changes nothing.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn pending(path: &Path) -> Result<Vec<String>, SqliteFileError> {
        let checked = check_names(path, FileUse::Read)
            .and_then(|()| connect_checked(path, FileUse::Read, Duration::ZERO));
        checked
            .map(|(_, compared)| compared.pending)
            .map_err(|problem| problem.at(path))
    }

    /// Registers the metrics of the file, with the prefix `sqlite`. Each scrape checks whether the file is in place.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let metrics = FileMetrics(Arc::downgrade(&self.0));
        registry
            .sub_registry_with_prefix("sqlite")
            .register_collector(Box::new(metrics));
    }

    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Fails while the file is not in place, or is no longer believed.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let current = self.check_in_place()?;
        // To judge the files costs more than a commit.
        if current.permissions != self.0.identity.permissions {
            check_believed(self.path())?;
        }
        Ok(())
    }

    /// Fails while the file, its log or its index is moved, removed, replaced or overwritten, or has a journal: what this
    /// process wrote would be lost.
    fn check_in_place(&self) -> Result<Identity, Problem> {
        let OpenFile {
            path,
            usage,
            identity,
            in_place,
            ..
        } = &*self.0;
        let current = Identity::of(path, *usage);
        let has_same_inodes = |current: &Identity| current.inodes == identity.inodes;
        let is_in_place = current.as_ref().is_ok_and(has_same_inodes) && self.0.has_same_content();
        let was_in_place = in_place.swap(is_in_place, Ordering::Relaxed);
        match (was_in_place, is_in_place) {
            (true, false) => tracing::error!("{}", Problem::Replaced.at(path)),
            (false, true) => tracing::info!(file = %path.display(), "the file is back"),
            _ => {}
        }
        current
            .ok()
            .filter(|_| is_in_place)
            .ok_or(Problem::Replaced)
    }

    /// Whether connections may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.0.usage != FileUse::Read
    }

    /// Longest wait for another process.
    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Opens a connection to the file that was opened, and to no other. It has to be closed before this is dropped.
    pub(crate) fn connect(&self) -> Result<SqliteConnection, Problem> {
        self.check()?;
        check_believed(self.path())?;
        let mut connection = establish(self.path(), self.0.usage)?;
        // Reading another file with this log could write the log into that file.
        self.check()?;
        configure(&mut connection, self.0.timeout)?;
        Ok(connection)
    }
}

impl OpenFile {
    /// Whether neither the file nor its log was overwritten.
    fn has_same_content(&self) -> bool {
        self.header.is_same() && self.log.as_ref().is_none_or(OpenLog::is_same)
    }

    /// Whether the index is the one that was opened. Beside another one, another process may have added to the log.
    fn has_same_index(&self) -> bool {
        Identity::of(&self.path, self.usage)
            .is_ok_and(|current| current.inodes.index == self.identity.inodes.index)
    }
}

/// Closing the last connection writes the log into the file, and removes it. If one of them was overwritten, that would
/// damage the file; beside another index, it would lose what another process added to the log.
impl Drop for OpenFile {
    fn drop(&mut self) {
        let is_same = self.has_same_content() && self.has_same_index();
        if !is_same && let Ok(connection) = self.connection.get_mut() {
            mem::forget(connection.take());
        }
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(formatter)
    }
}
