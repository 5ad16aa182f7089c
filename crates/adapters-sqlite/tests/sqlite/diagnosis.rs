//! Each finding about the file, with a file that has this one problem.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use animal_store_adapters_sqlite::{SqliteBulkStorage, diagnose};
use animal_store_app::{
    Finding,
    Verdict::{Error, Ok, Warning},
    ports::BulkStorage,
    test_support::{assert_finding, conspicuous},
};
use tempfile::TempDir;

use crate::{
    sql,
    store::{Store, TIMEOUT, files_in, log_of},
};

async fn findings(path: &Path) -> Vec<Finding> {
    diagnose(path, TIMEOUT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_file_has_no_finding_but_ok_while_it_is_used_and_after() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    let subjects = [
        "sqlite.file",
        "sqlite.permissions",
        "sqlite.disk",
        "sqlite.log",
        "sqlite.copy",
        "sqlite.pages",
    ];
    let assert_healthy = |found: Vec<Finding>| {
        assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
        assert_eq!(
            found
                .iter()
                .map(|finding| finding.subject)
                .collect::<Vec<_>>(),
            subjects
        );
    };
    assert_healthy(findings(&path).await);
    store.add("Tom").await;
    let _folder = store.close().await;
    assert_healthy(findings(&path).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_copy_is_found() {
    let store = Store::new();
    for (is_unfinished, verdict) in [(true, Warning), (false, Ok)] {
        SqliteBulkStorage::new(&store.file)
            .mark_copy(is_unfinished)
            .await
            .expect("marked");
        assert_finding(
            &findings(&store.path()).await,
            "sqlite.copy",
            verdict,
            "cop",
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_file_is_found_and_not_created() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    assert_finding(
        &findings(&path).await,
        "sqlite.file",
        Error,
        "a start of the service creates the file",
    );
    assert_eq!(files_in(folder.path()), [""; 0]);
    fs::write(log_of(&path), "log").expect("written");
    assert_finding(&findings(&path).await, "sqlite.file", Error, "pets.db-wal");
    assert_eq!(files_in(folder.path()), ["pets.db-wal"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_problem_is_found() {
    let store = Store::new();
    let path = store.path();
    let _folder = store.close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
    assert_finding(
        &findings(&path).await,
        "sqlite.permissions",
        Warning,
        "chmod 600",
    );
    sql::execute(
        &path,
        "INSERT INTO __diesel_schema_migrations (version) VALUES ('9999contract')",
    );
    assert_finding(&findings(&path).await, "sqlite.file", Error, "9999contract");
    sql::execute(&path, "DELETE FROM __diesel_schema_migrations");
    assert_finding(&findings(&path).await, "sqlite.file", Warning, "0001expand");
    sql::execute(
        &path,
        "INSERT INTO __diesel_schema_migrations (version) VALUES ('0001expand'), ('0002expand'), ('0003expand')",
    );
    sql::overwrite_page(
        &path,
        sql::number(
            &path,
            "SELECT rootpage FROM sqlite_schema WHERE name = 'pets_status_id'",
        ),
    );
    let found = findings(&path).await;
    assert_finding(&found, "sqlite.file", Ok, "pets.db");
    assert_finding(&found, "sqlite.pages", Error, "btreeInitPage");
    fs::write(&path, "no database").expect("written");
    assert_finding(
        &findings(&path).await,
        "sqlite.file",
        Error,
        "not an SQLite database",
    );
}
