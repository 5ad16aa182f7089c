use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};

use super::{
    checks::{check_program, check_writable},
    connection::{configure, connect},
    identity::FileIdentity,
    log::{Log, log_path},
};
use crate::{
    SqliteFileError,
    scalar::{number, text},
};

/// Pause between two attempts to open a file that another process opens or closes at the moment.
const PAUSE: Duration = Duration::from_millis(5);

/// How long another process must hold the shared lock of an empty log: a process that opens or closes the file at the
/// moment does not hold it that long.
const HELD: Duration = Duration::from_millis(200);

/// An open file. While it is open, its `user_version` is 1, in the file itself and not only in the log. The process
/// that closes it as the last one sets 0: from then on, the file does not need its log.
///
/// SQLite removes the log when the last connection is closed, so a crash at that moment, or at the first moment of a
/// start, leaves a file without a log. The number distinguishes it from a file whose log was lost.
pub(super) struct OpenFile {
    path: PathBuf,
    timeout: Duration,
    /// The last connection that is closed; `None` after an error at the end.
    connection: Mutex<Option<SqliteConnection>>,
    /// Dropped after the connection.
    log: Log,
    identity: FileIdentity,
}

/// What an attempt to lock the log found.
enum LockAttempt {
    /// The file can be used.
    Locked(Log),
    /// The log is empty, and another process holds the shared lock. This one has it as well.
    Held(Log),
    /// Another process opens or closes the file.
    Changing,
}

impl OpenFile {
    pub(super) fn open(path: &Path, timeout: Duration) -> Result<Self, SqliteFileError> {
        let deadline = Instant::now() + timeout;
        let mut connection = connect(path)?;
        let mut held_since = None;
        let log = loop {
            let configured = configure(path, &mut connection, timeout);
            match configured.and_then(|()| lock_log(path, &mut connection)) {
                Ok(LockAttempt::Locked(log)) => break log,
                // Another program has emptied the log of a server that has nothing to write.
                Ok(LockAttempt::Held(log)) if held_since.get_or_insert_with(Instant::now).elapsed() >= HELD => {
                    break log;
                }
                Ok(attempt) if Instant::now() < deadline => {
                    if matches!(attempt, LockAttempt::Changing) {
                        held_since = None;
                    }
                    // The lock is released first: two processes must not wait for each other.
                    drop(attempt);
                    pause();
                }
                Err(SqliteFileError::Locked { .. }) if Instant::now() < deadline => pause(),
                Ok(_) => return Err(SqliteFileError::Locked { path: path.to_owned() }),
                Err(error) => {
                    // Closing the last connection would remove the log of a file that is marked as open.
                    if log_path(path).metadata().is_ok_and(|log| log.len() > 0) {
                        std::mem::forget(connection);
                    }
                    return Err(error);
                }
            }
        };
        let connection = Mutex::new(Some(connection));
        let identity = FileIdentity::from_path(path)
            .map_err(|error| SqliteFileError::Unavailable { path: path.to_owned(), reason: error.to_string() })?;
        Ok(Self { path: path.to_owned(), timeout, connection, log, identity })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether the path still names the file.
    pub(super) fn is_in_place(&self) -> bool {
        FileIdentity::from_path(&self.path).is_ok_and(|current| current == self.identity)
    }

    /// Whether another process has the file open.
    pub(super) fn is_open_elsewhere(&self) -> bool {
        let deadline = Instant::now() + self.timeout;
        let is_alone = self.log.try_lock_alone();
        // The attempt has released the shared lock.
        while !self.log.try_lock_shared() && Instant::now() < deadline {
            pause();
        }
        !is_alone
    }

    /// Uses the file's own connection.
    pub(super) fn with_connection(
        &mut self,
        work: impl FnOnce(&Path, &mut SqliteConnection) -> Result<(), SqliteFileError>,
    ) -> Result<(), SqliteFileError> {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        connection.as_mut().map_or(Ok(()), |connection| work(&self.path, connection))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Of several processes that close the file at the same moment, the last one to try succeeds: a failed attempt
        // releases the shared lock.
        if !self.log.try_lock_alone() {
            return;
        }
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = connection.as_mut().map(mark_closed) {
            let (file, reason) = (self.path.display(), error.to_string());
            tracing::warn!(%file, reason, "the file was not closed: the next start needs its log");
            // Closing the last connection would remove the log.
            std::mem::forget(connection.take());
        }
    }
}

/// Checks the file and its log, marks the file as open, and locks the log.
fn lock_log(path: &Path, connection: &mut SqliteConnection) -> Result<LockAttempt, SqliteFileError> {
    let failed = |error: diesel::result::Error| SqliteFileError::from_message(path, &error.to_string());
    let io_failed =
        |error: io::Error| SqliteFileError::Unavailable { path: path.to_owned(), reason: error.to_string() };
    check_program(path, connection)?;
    let was_logged = text(connection, "PRAGMA journal_mode").map_err(failed)? == "wal";
    if !was_logged {
        switch_to_log(connection).map_err(failed)?;
    }
    check_writable(connection).map_err(failed)?;
    let Some(log) = Log::open(path).map_err(io_failed)? else { return Ok(LockAttempt::Changing) };
    if log.is_empty() || !is_marked_open(connection).map_err(failed)? {
        if !log.try_lock_alone() {
            let is_held = log.try_lock_shared() && is_marked_open(connection).map_err(failed)?;
            return Ok(if is_held { LockAttempt::Held(log) } else { LockAttempt::Changing });
        }
        // SQLite itself creates an empty log, for any program that reads the file.
        if was_logged && log.is_empty() && is_marked_open(connection).map_err(failed)? {
            return Err(SqliteFileError::LostLog { path: path.to_owned(), log: log_path(path) });
        }
        sync_folder(path).map_err(io_failed)?;
        mark_open(connection).map_err(failed)?;
    }
    let is_locked = log.try_lock_shared() && is_marked_open(connection).map_err(failed)?;
    Ok(if is_locked { LockAttempt::Locked(log) } else { LockAttempt::Changing })
}

/// Without this, a power failure could remove the log.
fn sync_folder(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A file that was not logged is complete. Another process may switch it, and mark it as open, at the same moment.
fn switch_to_log(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.immediate_transaction(|connection| {
        let is_logged = text(connection, "PRAGMA journal_mode")? == "wal";
        if is_logged { Ok(()) } else { connection.batch_execute("PRAGMA user_version = 0") }
    })?;
    connection.batch_execute("PRAGMA journal_mode = WAL; SELECT count(*) FROM sqlite_schema;")
}

fn is_marked_open(connection: &mut SqliteConnection) -> QueryResult<bool> {
    Ok(number(connection, "PRAGMA user_version")? != 0)
}

/// If another program reads the file, the checkpoint waits for it until the timeout. After that, a later one writes the
/// mark into the file itself.
fn mark_open(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.batch_execute("PRAGMA user_version = 1; PRAGMA wal_checkpoint(FULL);")
}

/// The first checkpoint makes room in the log, in case the disk is full. SQLite itself does the last one.
fn mark_closed(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.batch_execute("PRAGMA wal_checkpoint; PRAGMA user_version = 0;")
}

#[expect(clippy::disallowed_methods, reason = "nothing signals that another process has opened or closed the file")]
fn pause() {
    thread::sleep(PAUSE);
}
