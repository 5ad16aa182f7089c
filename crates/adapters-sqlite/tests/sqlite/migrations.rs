//! The schema and the migrations of a file.

use std::thread;

use animal_store_adapters_sqlite::{SqliteFile, SqliteFileError};
use tempfile::TempDir;

use crate::{sql, store::TIMEOUT};

#[test]
fn concurrent_first_starts_run_each_migration_once() {
    for _ in 0..10 {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("pets.db");
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                thread::spawn(move || SqliteFile::open(&path, TIMEOUT))
            })
            .collect();
        // Each keeps the file open until all have opened it.
        let files: Vec<_> = starts.into_iter().map(|start| start.join().expect("no panic").expect("opened")).collect();
        drop(files);
        assert_eq!(sql::number(&path, "SELECT count(*) FROM __diesel_schema_migrations"), 1);
    }
}

#[test]
fn an_expansion_by_a_newer_program_is_accepted_and_another_change_is_not() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    drop(SqliteFile::open(&path, TIMEOUT).expect("opened"));
    sql::execute(&path, "INSERT INTO __diesel_schema_migrations (version) VALUES ('9998_expand_x')");
    drop(SqliteFile::open(&path, TIMEOUT).expect("opened"));
    for name in ["9999_contract_x", "9999_expand_and_contract_x", "9999"] {
        let statement = format!("UPDATE __diesel_schema_migrations SET version = '{name}' WHERE version LIKE '999%'");
        sql::execute(&path, &statement);
        let error = SqliteFile::open(&path, TIMEOUT).expect_err("newer");
        assert!(matches!(&error, SqliteFileError::Newer { migrations, .. } if migrations == &[name]), "{error}");
    }
    sql::execute(&path, "DELETE FROM __diesel_schema_migrations WHERE version LIKE '0001%'");
    let error = SqliteFile::open(&path, TIMEOUT).expect_err("newer");
    assert!(matches!(error, SqliteFileError::Newer { .. }), "a pending migration is not run: {error}");
}
