use std::{path::Path, time::Duration};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};

use crate::SqliteFileError;

/// Size to which SQLite shortens the log after a checkpoint, in bytes. A burst of creates may leave a larger one.
const LOG_SIZE_LIMIT: u32 = 64 << 20;

/// Size of the page cache of a connection, in KiB.
const CACHE_SIZE: u32 = 8 << 10;

/// Opens a connection. A commit of it is on the disk when it ends.
pub(super) fn establish(path: &Path, timeout: Duration) -> Result<SqliteConnection, SqliteFileError> {
    let mut connection = connect(path)?;
    configure(path, &mut connection, timeout)?;
    Ok(connection)
}

/// Opens a connection without its settings. It reads nothing.
pub(super) fn connect(path: &Path) -> Result<SqliteConnection, SqliteFileError> {
    let unavailable = |reason: String| SqliteFileError::Unavailable { path: path.to_owned(), reason };
    // An absolute path is neither a URI nor `:memory:`.
    let absolute = std::path::absolute(path).map_err(|error| unavailable(error.to_string()))?;
    let url = absolute.to_str().ok_or_else(|| unavailable("the path is not UTF-8".to_owned()))?;
    SqliteConnection::establish(url).map_err(|error| SqliteFileError::from_message(path, &error.to_string()))
}

/// Applies the settings. This reads the header of the file.
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
    connection.batch_execute(&settings).map_err(|error| SqliteFileError::from_message(path, &error.to_string()))
}
