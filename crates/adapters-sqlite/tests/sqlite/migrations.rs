//! The schema and the migrations of a file.

use animal_store_adapters_sqlite::SqliteFileError;

use crate::{prelude::*, store::open_in_each_way};

const ALL: [&str; 3] = ["0001expand", "0002expand", "0003expand"];

#[test]
fn pending_migrations_are_named_and_run_by_migrate_only() {
    let (_folder, path) = closed_file();
    write(&path, "");
    assert_eq!(SqliteFile::pending(&path).expect("an empty file"), ALL);
    assert_pending(SqliteFile::open(&path, FileUse::Read, TIMEOUT));
    assert_eq!(read(&path), b"");

    let migrate = || SqliteFile::migrate(&path, TIMEOUT).expect("migrated");
    assert_eq!(migrate(), ALL);
    assert_eq!(SqliteFile::pending(&path).expect("read"), [""; 0]);
    assert_eq!(migrate(), [""; 0]);

    let replacement = "DELETE FROM __diesel_schema_migrations;
        INSERT INTO __diesel_schema_migrations (version) VALUES ('9998expand')";
    sql::execute(&path, replacement);
    for usage in [FileUse::Write, FileUse::WriteOrCreate] {
        assert_pending(SqliteFile::open(&path, usage, TIMEOUT));
    }
}

#[test]
fn a_file_without_tables_is_created_by_a_command_that_may_or_if_another_process_has_begun() {
    let folder = new_folder();
    let path = |name| folder.path().join(name);
    write(path("empty"), "");
    sql::execute(&path("begun"), "PRAGMA journal_mode = WAL");
    assert_pending(SqliteFile::open(&path("empty"), FileUse::Write, TIMEOUT));
    for (name, usage) in [
        ("missing", FileUse::WriteOrCreate),
        ("empty", FileUse::WriteOrCreate),
        ("begun", FileUse::Write),
    ] {
        SqliteFile::open(&path(name), usage, TIMEOUT).expect("created");
    }
}

#[track_caller]
fn assert_pending(opened: Result<SqliteFile, SqliteFileError>) {
    let error = opened.expect_err("pending").to_string();
    let versions = ALL.join(", ");
    let text = format!("these migrations are pending: {versions}; run animal-store migrate");
    assert!(error.contains(&text), "{error}");
}

#[test]
fn an_expansion_by_a_newer_program_is_accepted_and_another_layout_is_refused_unchanged() {
    let (folder, path) = closed_file();
    let record = "INSERT INTO __diesel_schema_migrations (version) VALUES ('9998expand')";
    sql::execute(&path, record);
    assert!(open_in_each_way(&path).iter().all(Result::is_ok));
    for (change, text) in [
        (
            "UPDATE __diesel_schema_migrations SET version = '9999contract' WHERE version = '9998expand'",
            "a newer program has made changes that this one cannot work with: 9999contract;",
        ),
        // A pending migration is not run.
        (
            "DELETE FROM __diesel_schema_migrations WHERE version LIKE '0001%'",
            "a newer program has made changes that this one cannot work with: 9999contract;",
        ),
        (
            "PRAGMA journal_mode = DELETE; DELETE FROM __diesel_schema_migrations;
            INSERT INTO __diesel_schema_migrations (version) VALUES ('0001_expand_create_tables')",
            "a program from before version 0.1.0 made the tables",
        ),
    ] {
        sql::execute(&path, change);
        assert_refused(&path, text);
    }
    assert_refused(&path, "pets export");
    assert_eq!(files_in(folder.path()), ["pets.db"]);
}
