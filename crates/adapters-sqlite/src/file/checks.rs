//! The checks of a start. None depends on the number of pets.

use std::path::Path;

use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};

use crate::{SqliteFileError, scalar::number, schema::APPLICATION_ID};

/// Reads the first and the last row of each table and index. SQLite itself compares the size of the file with its
/// header, and parses the schema.
const EDGES: &str = "
    SELECT * FROM pets WHERE id IN (SELECT min(id) FROM pets);
    SELECT * FROM pets WHERE id IN (SELECT max(id) FROM pets);
    SELECT status, id FROM pets INDEXED BY pets_status_id ORDER BY status, id LIMIT 1;
    SELECT status, id FROM pets INDEXED BY pets_status_id ORDER BY status DESC, id DESC LIMIT 1;
    SELECT * FROM idempotency_keys ORDER BY api_key_id, key_digest LIMIT 1;
    SELECT * FROM idempotency_keys ORDER BY api_key_id DESC, key_digest DESC LIMIT 1;
    SELECT expires_at FROM idempotency_keys INDEXED BY idempotency_keys_expires_at ORDER BY expires_at LIMIT 1;
    SELECT expires_at FROM idempotency_keys INDEXED BY idempotency_keys_expires_at ORDER BY expires_at DESC LIMIT 1;
    SELECT * FROM api_keys ORDER BY id LIMIT 1;
    SELECT * FROM api_keys ORDER BY id DESC LIMIT 1;
    SELECT * FROM api_key_tokens ORDER BY digest LIMIT 1;
    SELECT * FROM api_key_tokens ORDER BY digest DESC LIMIT 1;
    SELECT * FROM api_key_uses LIMIT 1;
    SELECT * FROM api_key_state;
    SELECT * FROM imports LIMIT 1;";

/// Whether the next pet gets a greater id than all others.
const SEQUENCE_IS_VALID: &str = "
    SELECT coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'pets'), 0)
        >= coalesce((SELECT max(id) FROM pets), 0)";

/// Refuses the database of another program. An empty file is ours.
pub(super) fn check_program(path: &Path, connection: &mut SqliteConnection) -> Result<(), SqliteFileError> {
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

/// Fails if another process keeps its lock, or if this process has no permission.
pub(super) fn check_writable(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.batch_execute("BEGIN IMMEDIATE; ROLLBACK;")
}

/// Checks the contents of a file with the current schema.
pub(crate) fn check_contents(path: &Path, connection: &mut SqliteConnection) -> Result<(), SqliteFileError> {
    let corrupt = |reason: String| SqliteFileError::Corrupt { path: path.to_owned(), reason };
    connection.batch_execute(EDGES).map_err(|error| corrupt(error.to_string()))?;
    match number(connection, SEQUENCE_IS_VALID) {
        Ok(1) => Ok(()),
        Ok(_) => Err(corrupt("table sqlite_sequence: the next pet would get an id that is in use".to_owned())),
        Err(error) => Err(corrupt(error.to_string())),
    }
}
