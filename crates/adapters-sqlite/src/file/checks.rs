//! The checks of a file before it is used.

use std::{
    fs::File,
    io::{self, ErrorKind},
    mem::ManuallyDrop,
    os::unix::fs::FileExt,
    path::Path,
    time::Duration,
};

use animal_store_app::SchemaComparison;
use diesel::{SqliteConnection, connection::SimpleConnection};

use super::{
    Access,
    connection::connect,
    identity::{folder_of, log_paths},
};
use crate::{
    SqliteFileError,
    scalar::{number, text},
    schema::{self, APPLICATION_ID},
};

/// Checks that the file exists and that this program can use it.
pub(super) fn connect_checked(
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

/// Distinguishes a file that was never there from one that was moved away from its log, or replaced beside it. SQLite
/// removes a log beside an empty file, writes a log into any other file, and ignores a log beside a link.
pub(super) fn check_exists(path: &Path) -> Result<(), SqliteFileError> {
    let mut logs = log_paths(path);
    let log = logs.pop().expect("it has that of the path");
    // Before the file: a first start writes the log after the file.
    let size = log.metadata().map(|log| log.len());
    let path = path.to_owned();
    let lost = match (path.metadata(), size) {
        (Ok(file), _) if file.is_dir() => return Err(SqliteFileError::IsFolder { path }),
        (Ok(file), Ok(1..)) if file.len() == 0 || !has_log(&path).unwrap_or(true) => Some(log),
        // If the log is empty, it is that of a process that still has the file open.
        (Err(error), Ok(_)) if error.kind() == ErrorKind::NotFound => Some(log),
        (Err(error), Err(_)) if error.kind() == ErrorKind::NotFound => {
            let has_folder = folder_of(&path).is_dir();
            return Err(if has_folder {
                SqliteFileError::Missing { path }
            } else {
                SqliteFileError::NoFolder { path }
            });
        }
        _ => logs.into_iter().find(|log| log.metadata().is_ok_and(|log| log.len() > 0)),
    };
    lost.map_or(Ok(()), |log| Err(SqliteFileError::Lost { path, log }))
}

/// Whether the format of the file is the one with a log (<https://sqlite.org/fileformat.html>, offset 18); a backup has
/// none. The file stays open: to close it would release the locks that SQLite has on it in this process.
fn has_log(path: &Path) -> io::Result<bool> {
    let file = ManuallyDrop::new(File::open(path)?);
    let mut versions = [0; 2];
    file.read_exact_at(&mut versions, 18)?;
    Ok(versions == [2, 2])
}

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
pub(super) fn connect_to_write(path: &Path, timeout: Duration) -> Result<SqliteConnection, SqliteFileError> {
    let mut connection = connect(path, Access::Write, timeout)?;
    let kept = text(&mut connection, "PRAGMA journal_mode = WAL");
    // BEGIN IMMEDIATE alone succeeds without a permission to write.
    let write = format!("BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; ROLLBACK;");
    let writable = kept.and_then(|_| connection.batch_execute(&write));
    writable.map_err(|error| SqliteFileError::from_message(path, &error.to_string()))?;
    Ok(connection)
}
