//! Each finding about the file, with a file that has this one problem.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Instant};

use animal_store_adapters_sqlite::diagnose;
use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Warning},
};
use tempfile::TempDir;

use crate::{
    sql,
    store::{Store, TIMEOUT, log_of},
};

async fn findings(path: &Path) -> Vec<Finding> {
    diagnose(path, TIMEOUT).await
}

/// Asserts the verdict about a subject, and that its finding or its advice contains the text.
#[track_caller]
fn assert_finding(findings: &[Finding], subject: &str, verdict: Verdict, text: &str) {
    let finding = findings.iter().find(|finding| finding.subject == subject);
    let finding = finding.unwrap_or_else(|| panic!("no {subject}: {findings:#?}"));
    assert_eq!(finding.verdict, verdict, "{findings:#?}");
    assert_eq!(finding.advice.is_none(), verdict == Ok, "{finding:?}");
    assert!(format!("{} {:?}", finding.found, finding.advice).contains(text), "{text}: {finding:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_file_has_no_finding_but_ok() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    let start = Instant::now();
    let found = findings(&path).await;
    assert!(start.elapsed() < TIMEOUT, "a process that has the file open delays nothing");
    assert!(found.iter().all(|finding| finding.verdict == Ok), "{found:#?}");
    assert_finding(&found, "sqlite.processes", Ok, "another process");
    store.add("Tom").await;
    let folder = store.close().await;
    assert_finding(&findings(&path).await, "sqlite.processes", Ok, "none");
    assert!(!log_of(&path).exists(), "the diagnosis closes the file");
    drop(folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_file_is_found_and_not_created() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    assert_finding(&findings(&path).await, "sqlite.file", Warning, "does not exist");
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_problem_is_found() {
    let store = Store::new();
    let path = store.path();
    let folder = store.close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
    assert_finding(&findings(&path).await, "sqlite.permissions", Warning, "chmod 600");
    sql::execute(&path, "INSERT INTO __diesel_schema_migrations (version) VALUES ('9998_expand_x')");
    assert_finding(&findings(&path).await, "sqlite.migrations", Warning, "9998_expand_x");
    sql::execute(&path, "INSERT INTO __diesel_schema_migrations (version) VALUES ('9999_contract_x')");
    assert_finding(&findings(&path).await, "sqlite.migrations", Error, "9999_contract_x");
    sql::execute(&path, "DELETE FROM __diesel_schema_migrations");
    assert_finding(&findings(&path).await, "sqlite.migrations", Warning, "0001_expand_create_tables");
    sql::overwrite_page(&path, sql::number(&path, "SELECT rootpage FROM sqlite_schema WHERE name = 'pets_status_id'"));
    assert_finding(&findings(&path).await, "sqlite.pages", Error, "btreeInitPage");
    fs::write(&path, "no database").expect("written");
    assert_finding(&findings(&path).await, "sqlite.file", Error, "not an SQLite database");
    drop(folder);
}

/// A start examines the contents after its migrations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contents_of_another_schema_are_not_examined() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    fs::write(&path, "").expect("written");
    let found = findings(&path).await;
    assert_finding(&found, "sqlite.file", Ok, "pets.db");
    assert_finding(&found, "sqlite.migrations", Warning, "0001_expand_create_tables");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_a_start_refuses_is_an_error() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    let folder = store.close().await;
    sql::execute(&path, "UPDATE sqlite_sequence SET seq = 0");
    assert_finding(&findings(&path).await, "sqlite.file", Error, "an id that is in use");
    drop(folder);
}
