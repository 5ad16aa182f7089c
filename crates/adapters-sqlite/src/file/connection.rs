use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, absolute},
    time::Duration,
};

use diesel::{Connection, QueryResult, SqliteConnection, connection::SimpleConnection};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::FileUse;
use crate::error::Problem;

/// Size to which SQLite shortens the log after a checkpoint, in bytes. A burst of creates may leave a larger one.
const LOG_SIZE_LIMIT: u32 = 64 << 20;

/// Size of the page cache of a connection, in KiB. A larger one costs memory, and saves nothing that the cache of the
/// operating system does not.
const CACHE_SIZE: u32 = 2 << 10;

/// Every byte that could have a meaning in a URI.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

/// Opens a connection to an existing file, without reading it.
pub(super) fn establish(path: &Path, usage: FileUse) -> Result<SqliteConnection, Problem> {
    // Not `rwc`: SQLite never creates the file.
    let mode = if usage == FileUse::Read { "ro" } else { "rw" };
    let absolute = absolute(path)?;
    let url = format!(
        "file:{}?mode={mode}",
        percent_encode(absolute.as_os_str().as_bytes(), ENCODED)
    );
    SqliteConnection::establish(&url).map_err(|error| Problem::of_message(&error))
}

/// Applies the settings: a commit of the connection is on the disk when it ends. This reads the file.
///
/// A container with a read-only root has no folder for temporary files. They are small, except in a migration: pages
/// that a statement may restore, and sorted API keys.
pub(super) fn configure(connection: &mut SqliteConnection, timeout: Duration) -> QueryResult<()> {
    connection.batch_execute(&format!(
        "PRAGMA busy_timeout = {}; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
         PRAGMA journal_size_limit = {LOG_SIZE_LIMIT}; PRAGMA cache_size = -{CACHE_SIZE}; \
         PRAGMA temp_store = MEMORY;",
        timeout.as_millis()
    ))
}

/// Opens a connection to an existing file, whether it is the one of a [`SqliteFile`](super::SqliteFile) or not.
pub(crate) fn connect(
    path: &Path,
    usage: FileUse,
    timeout: Duration,
) -> Result<SqliteConnection, Problem> {
    let mut connection = establish(path, usage)?;
    configure(&mut connection, timeout)?;
    Ok(connection)
}
