//! The schema and the migrations of a file.

use std::{fs, path::PathBuf};

use animal_store_adapters_sqlite::{FileUse, SqliteFile, SqliteFileError};
use tempfile::TempDir;

use crate::{
    sql,
    store::{TIMEOUT, assert_refused, files_in, open, open_in_each_way},
};

const NEWER: &str = "a newer program has made changes that this one cannot work with";

/// A closed file.
fn closed_file() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    drop(open(&path));
    (folder, path)
}

#[test]
fn pending_migrations_are_named_and_run_by_migrate_only() {
    let (_folder, path) = closed_file();
    fs::write(&path, "").expect("written");
    assert_eq!(
        SqliteFile::pending(&path).expect("an empty file"),
        ["0001expand", "0002expand", "0003expand"]
    );
    assert_pending(SqliteFile::open(&path, FileUse::Read, TIMEOUT));
    assert_eq!(fs::read(&path).expect("read"), b"");
    assert_eq!(
        SqliteFile::migrate(&path, TIMEOUT).expect("migrated"),
        ["0001expand", "0002expand", "0003expand"]
    );
    assert_eq!(SqliteFile::pending(&path).expect("read"), [""; 0]);
    assert_eq!(
        SqliteFile::migrate(&path, TIMEOUT).expect("opened"),
        [""; 0]
    );
    let replacement = "DELETE FROM __diesel_schema_migrations;
        INSERT INTO __diesel_schema_migrations (version) VALUES ('9998expand')";
    sql::execute(&path, replacement);
    for usage in [FileUse::Write, FileUse::WriteOrCreate] {
        assert_pending(SqliteFile::open(&path, usage, TIMEOUT));
    }
}

#[test]
fn a_file_without_tables_is_created_by_a_command_that_may_or_if_another_process_has_begun() {
    let folder = TempDir::new().expect("a folder");
    let [missing, empty, begun] =
        ["missing", "empty", "begun"].map(|name| folder.path().join(name));
    fs::write(&empty, "").expect("written");
    sql::execute(&begun, "PRAGMA journal_mode = WAL");
    assert_pending(SqliteFile::open(&empty, FileUse::Write, TIMEOUT));
    for (path, usage) in [
        (&missing, FileUse::WriteOrCreate),
        (&empty, FileUse::WriteOrCreate),
        (&begun, FileUse::Write),
    ] {
        SqliteFile::open(path, usage, TIMEOUT).expect("created");
    }
}

#[track_caller]
fn assert_pending(opened: Result<SqliteFile, SqliteFileError>) {
    let error = opened.expect_err("pending");
    assert!(
        error.to_string().contains(
            "these migrations are pending: 0001expand, 0002expand, 0003expand; run animal-store migrate"
        ),
        "{error}"
    );
}

#[test]
fn an_expansion_by_a_newer_program_is_accepted_and_another_change_is_not() {
    let (_folder, path) = closed_file();
    sql::execute(
        &path,
        "INSERT INTO __diesel_schema_migrations (version) VALUES ('9998expand')",
    );
    assert!(open_in_each_way(&path).iter().all(Result::is_ok));
    sql::execute(
        &path,
        "UPDATE __diesel_schema_migrations SET version = '9999contract' WHERE version LIKE '999%'",
    );
    assert_refused(&path, &format!("{NEWER}: 9999contract;"));
    // A pending migration is not run.
    sql::execute(
        &path,
        "DELETE FROM __diesel_schema_migrations WHERE version LIKE '0001%'",
    );
    assert_refused(&path, NEWER);
}

#[test]
fn a_file_of_an_older_layout_is_refused_and_not_changed() {
    let (folder, path) = closed_file();
    let statements = "PRAGMA journal_mode = DELETE;
        DELETE FROM __diesel_schema_migrations WHERE version <> '0001expand';
        UPDATE __diesel_schema_migrations SET version = '0001_expand_create_tables'";
    sql::execute(&path, statements);
    for text in [
        "a program from before version 0.1.0 made the tables",
        "pets export",
    ] {
        assert_refused(&path, text);
    }
    assert_eq!(files_in(folder.path()), ["pets.db"]);
}
