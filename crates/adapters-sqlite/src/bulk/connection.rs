use diesel::connection::SimpleConnection;

use super::error::BulkError;
use crate::{SqliteFile, file::FileConnection};

/// Size of the page cache, in KiB. Pages are read and written in order of id, so a larger one only takes memory.
const CACHE_SIZE: u32 = 1 << 10;

/// Opens a connection with a small page cache.
pub(super) fn connect(file: &SqliteFile) -> Result<FileConnection, BulkError> {
    let mut connection = file.connect()?;
    connection.batch_execute(&format!("PRAGMA cache_size = -{CACHE_SIZE}"))?;
    Ok(connection)
}
