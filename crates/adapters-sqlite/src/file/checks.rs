//! The checks of a file before it is used.

use std::{io::ErrorKind, path::Path, time::Duration};

use animal_store_app::SchemaComparison;
use diesel::{SqliteConnection, connection::SimpleConnection};

use super::{
    Access,
    connection::connect,
    identity::{folder_of, log_path},
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

/// Distinguishes a file that was never there from one that was moved away from its log. SQLite removes the log beside
/// an empty file.
pub(super) fn check_exists(path: &Path) -> Result<(), SqliteFileError> {
    // Before the size of the file: a first start writes the log after the file.
    let log = log_path(path);
    let log_size = log.metadata().map(|log| log.len());
    match (path.metadata(), log_size) {
        (Ok(file), _) if file.is_dir() => Err(SqliteFileError::IsFolder { path: path.to_owned() }),
        (Ok(file), Ok(1..)) if file.len() == 0 => Err(SqliteFileError::Lost { path: path.to_owned(), log }),
        (Err(error), log_size) if error.kind() == ErrorKind::NotFound => Err(match log_size {
            // A command that reads leaves an empty one.
            Ok(1..) => SqliteFileError::Lost { path: path.to_owned(), log },
            _ if !folder_of(path).is_dir() => SqliteFileError::NoFolder { path: path.to_owned() },
            _ => SqliteFileError::Missing { path: path.to_owned() },
        }),
        _ => Ok(()),
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
pub(super) fn connect_to_write(path: &Path, timeout: Duration) -> Result<SqliteConnection, SqliteFileError> {
    let mut connection = connect(path, Access::Write, timeout)?;
    let kept = text(&mut connection, "PRAGMA journal_mode = WAL");
    // BEGIN IMMEDIATE alone succeeds without a permission to write.
    let write = format!("BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; ROLLBACK;");
    let writable = kept.and_then(|_| connection.batch_execute(&write));
    writable.map_err(|error| SqliteFileError::from_message(path, &error.to_string()))?;
    Ok(connection)
}
