//! Each finding about the file, with a file that has this one problem.

use std::process::Command;

use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Warning},
    test_support::{assert_finding, conspicuous},
};

use crate::{child, prelude::*};

async fn findings(path: &Path) -> Vec<Finding> {
    diagnose(path, TIMEOUT).await
}

async fn assert_found(path: &Path, subject: &str, verdict: Verdict, text: &str) {
    assert_finding(&findings(path).await, subject, verdict, text);
}

#[tokio::test]
async fn a_healthy_file_has_no_finding_but_ok_while_it_is_used_and_after() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    let subjects = [
        "sqlite.file",
        "sqlite.permissions",
        "sqlite.mount",
        "sqlite.disk",
        "sqlite.log",
        "sqlite.copy",
        "sqlite.pages",
    ];
    let assert_healthy = |found: Vec<Finding>| {
        assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
        assert!(found.iter().map(|finding| finding.subject).eq(subjects));
    };
    assert_healthy(findings(&path).await);
    store.add("Tom").await;
    let _folder = store.close().await;
    assert_healthy(findings(&path).await);
}

#[tokio::test]
async fn an_unfinished_copy_is_found() {
    let store = Store::new();
    for (is_unfinished, verdict) in [(true, Warning), (false, Ok)] {
        let bulk = SqliteBulkStorage::new(&store.file);
        bulk.mark_copy(is_unfinished).await.expect("marked");
        assert_found(&store.path(), "sqlite.copy", verdict, "cop").await;
    }
}

#[tokio::test]
async fn a_missing_file_is_found_and_not_created() {
    let (folder, path) = new_path();
    let advice = "a start of the service creates the file";
    assert_found(&path, "sqlite.file", Error, advice).await;
    assert_eq!(files_in(folder.path()), [""; 0]);
    write(log_of(&path), "log");
    assert_found(&path, "sqlite.file", Error, "pets.db-wal").await;
    assert_eq!(files_in(folder.path()), ["pets.db-wal"]);
}

#[tokio::test]
async fn each_problem_is_found() {
    let (_folder, path) = closed_file();
    set_mode(&path, 0o644);
    assert_found(&path, "sqlite.permissions", Warning, "chmod 600").await;
    let record = "INSERT INTO __diesel_schema_migrations (version) VALUES";
    sql::execute(&path, &format!("{record} ('9999contract')"));
    assert_found(&path, "sqlite.file", Error, "9999contract").await;
    sql::execute(&path, "DELETE FROM __diesel_schema_migrations");
    assert_found(&path, "sqlite.file", Warning, "0001expand").await;
    let all = format!("{record} ('0001expand'), ('0002expand'), ('0003expand')");
    sql::execute(&path, &all);
    sql::overwrite_root(&path, "pets_status_id");
    let found = findings(&path).await;
    assert_finding(&found, "sqlite.file", Ok, "pets.db");
    assert_finding(&found, "sqlite.pages", Error, "btreeInitPage");
    write(&path, "no database");
    assert_found(&path, "sqlite.file", Error, "not an SQLite database").await;
}

#[tokio::test]
async fn a_damaged_file_has_at_most_ten_lines_of_problems() {
    let store = Store::new();
    let path = store.path();
    store.add_many().await;
    let _folder = store.close().await;
    sql::overwrite_root(&path, "pets");
    let found = findings(&path).await;
    let pages = assert_finding(&found, "sqlite.pages", Error, "");
    assert!(pages.found.split("; ").count() <= 10, "{pages:?}");
    assert!(!pages.found.contains('\n'), "{pages:?}");
    let advice = "restore a backup";
    let shown = format!("{pages:?}");
    assert_eq!(shown.matches(advice).count(), 1, "{shown}");
}

#[tokio::test]
async fn advice_quotes_a_path() {
    let folder = new_folder();
    let path = folder.path().join("my pets; $(id) 'x'.db");
    drop(open(&path));
    set_mode(&path, 0o644);
    let found = findings(&path).await;
    let finding = assert_finding(&found, "sqlite.permissions", Warning, "");
    let advice = finding.advice.as_deref().expect("advice");
    let script = format!("cd /; {advice}");
    let done = Command::new("sh").args(["-ec", &script]).status();
    assert!(done.expect("sh").success(), "{advice}");
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_file_that_a_start_would_refuse_is_an_error() {
    let (_folder, path) = closed_file();
    for (mounts, scenario) in [
        (
            "mount --bind \"$0\" \"$0\"; mount -o remount,bind,ro \"$0\"",
            "doctor: not writable",
        ),
        (
            "d=$(dirname \"$0\"); mount --bind \"$d\" \"$d\"; mount -o remount,bind,ro \"$d\"",
            "doctor: not writable",
        ),
        ("mount --bind \"$0\" \"$0\"", "doctor: mounted alone"),
    ] {
        child::run_with_mounts(mounts, scenario, &path);
    }
}

/// The file is on a mount that cannot be written. Runs in another process.
pub(crate) async fn find_that_it_is_not_writable(path: &Path) {
    assert_found(path, "sqlite.file", Error, "Read-only").await;
}

/// The file is a mount point. Runs in another process.
pub(crate) async fn find_that_it_is_mounted_alone(path: &Path) {
    assert_found(path, "sqlite.mount", Error, "mounted alone").await;
}
