use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, absolute},
    time::Duration,
};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::{Access, SqliteFileError};

/// Size to which SQLite shortens the log after a checkpoint, in bytes. A burst of creates may leave a larger one.
const LOG_SIZE_LIMIT: u32 = 64 << 20;

/// Size of the page cache of a connection, in KiB. A larger one costs memory, and saves nothing that the cache of the
/// operating system does not.
const CACHE_SIZE: u32 = 2 << 10;

/// Every byte that could have a meaning in a URI.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// Opens a connection to an existing file, without reading it.
pub(super) fn establish(path: &Path, access: Access) -> Result<SqliteConnection, SqliteFileError> {
    let absolute = absolute(path).map_err(|error| SqliteFileError::of(path, &error))?;
    let mode = match access {
        Access::Read => "ro",
        // Not `rwc`: SQLite never creates the file.
        Access::Write | Access::Migrate => "rw",
    };
    let url = format!("file:{}?mode={mode}", percent_encode(absolute.as_os_str().as_bytes(), ENCODED));
    SqliteConnection::establish(&url).map_err(|error| SqliteFileError::of(path, &error))
}

/// Applies the settings: a commit of the connection is on the disk when it ends. This reads the file.
pub(super) fn configure(
    path: &Path,
    connection: &mut SqliteConnection,
    timeout: Duration,
) -> Result<(), SqliteFileError> {
    let settings = format!(
        "PRAGMA busy_timeout = {}; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
         PRAGMA journal_size_limit = {LOG_SIZE_LIMIT}; PRAGMA cache_size = -{CACHE_SIZE};",
        timeout.as_millis()
    );
    connection.batch_execute(&settings).map_err(|error| SqliteFileError::of(path, &error))
}

/// Opens a connection to an existing file that no other part of this program uses.
pub(crate) fn connect_once(path: &Path) -> Result<SqliteConnection, SqliteFileError> {
    connect(path, Access::Write, Duration::ZERO)
}

pub(super) fn connect(path: &Path, access: Access, timeout: Duration) -> Result<SqliteConnection, SqliteFileError> {
    let mut connection = establish(path, access)?;
    configure(path, &mut connection, timeout)?;
    Ok(connection)
}
