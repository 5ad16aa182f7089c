//! Statements of another program.

use std::{path::Path, process::Command};

use diesel::{
    Connection, RunQueryDsl, SqliteConnection, connection::SimpleConnection, dsl, sql_types::BigInt,
};

pub(crate) fn connect(path: &Path) -> SqliteConnection {
    let mut connection =
        SqliteConnection::establish(path.to_str().expect("UTF-8")).expect("a connection");
    connection
        .batch_execute("PRAGMA busy_timeout = 60000")
        .expect("set");
    connection
}

pub(crate) fn execute(path: &Path, statements: &str) {
    connect(path).batch_execute(statements).expect("executed");
}

/// Returns the only value.
pub(crate) fn number(path: &Path, query: &str) -> i64 {
    value(&mut connect(path), query)
}

pub(crate) fn value(connection: &mut SqliteConnection, query: &str) -> i64 {
    dsl::sql::<BigInt>(query)
        .get_result(connection)
        .expect("a number")
}

/// Holds the lock of a process that writes, until it is dropped.
pub(crate) fn lock(path: &Path) -> SqliteConnection {
    let mut connection = connect(path);
    connection.batch_execute("BEGIN IMMEDIATE").expect("locked");
    connection
}

/// Overwrites the root page of a table or an index.
pub(crate) fn overwrite_root(path: &Path, name: &str) {
    let query = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'");
    overwrite_page(path, number(path, &query));
}

/// Overwrites a page by another process: a process that closes a file loses all its locks of it, also those of SQLite.
pub(crate) fn overwrite_page(path: &Path, page: i64) {
    let seek = page - 1;
    let dd =
        format!("dd if=/dev/zero of=\"$0\" bs=4096 seek={seek} count=1 conv=notrunc status=none");
    let done = Command::new("sh").args(["-c", &dd]).arg(path).status();
    assert!(done.expect("sh").success());
}
