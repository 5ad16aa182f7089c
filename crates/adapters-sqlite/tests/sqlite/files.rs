//! Files that cannot be used, each with an error that says what to do.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use animal_store_adapters_sqlite::{FileUse, SqliteFile};
use animal_store_app::test_support::join_tasks;
use diesel::connection::SimpleConnection;
use tempfile::TempDir;

use crate::{
    child, sql,
    store::{
        Store, TIMEOUT, assert_refused, copy_of_crash, files_in, log_of, mode, open, settings,
    },
};

/// A closed file with some pets.
async fn closed_file() -> (TempDir, PathBuf) {
    let store = Store::new();
    join_tasks((0..1000).map(|number| store.try_add(&format!("{number} {}", "x".repeat(200)))))
        .await;
    assert_eq!(store.count().await, 1000);
    let path = store.path();
    (store.close().await, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_have_the_sizes_of_the_file_and_its_log_and_the_space_of_its_disk() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    for (sample, path) in [
        ("sqlite_file_bytes", &path),
        ("sqlite_log_bytes", &log_of(&path)),
    ] {
        let size = path.metadata().expect("a file").len();
        assert_eq!(store.metric(sample), size, "{sample}");
    }
    assert!(store.metric("sqlite_disk_free_bytes") > 0);
    assert!(store.metric("sqlite_disk_reserve_bytes") >= 16 << 20);
}

pub(crate) fn create(path: &Path) {
    let _file = open(path);
    let index = PathBuf::from(format!("{}-shm", path.display()));
    assert_eq!([mode(path), mode(&log_of(path)), mode(&index)], [0o600; 3]);
}

#[test]
fn a_file_is_created_for_its_owner_only_under_any_umask() {
    for umask in ["0", "0777"] {
        let folder = TempDir::new().expect("a folder");
        let script = format!("umask {umask}; exec \"$@\"");
        child::run(
            &["sh", "-c", &script, "sh"],
            "no umask",
            &folder.path().join("pets.db"),
        );
    }
}

#[test]
fn a_missing_folder_and_a_folder_instead_of_a_file_are_errors() {
    let folder = TempDir::new().expect("a folder");
    expect_error(
        &folder.path().join("missing/pets.db"),
        "the folder does not exist",
    );
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    expect_error(&file.join("pets.db"), "the folder does not exist");
    assert_refused(folder.path(), "this is a folder");
}

#[test]
fn a_file_that_cannot_be_examined_is_not_said_to_be_missing() {
    let folder = TempDir::new().expect("a folder");
    let link = folder.path().join("loop.db");
    symlink(&link, &link).expect("linked");
    expect_error(&link, "this user cannot read and write");
}

pub(crate) fn expect_not_writable(path: &Path) {
    let error = expect_error(path, "this user cannot read and write");
    assert!(error.contains("they belong to "), "{error}");
}

pub(crate) fn expect_full_disk(path: &Path) {
    expect_error(path, "the disk is full");
}

#[track_caller]
fn expect_error(path: &Path, text: &str) -> String {
    let error = SqliteFile::open(path, FileUse::Create, TIMEOUT)
        .expect_err(text)
        .to_string();
    assert!(
        error.starts_with(&format!("{}: {text}", path.display())),
        "{error}"
    );
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_created_or_written_is_an_error() {
    let (_folder, path) = closed_file().await;
    for (mounts, scenario) in [
        (
            "mount -t tmpfs -o ro none \"$(dirname \"$0\")\"",
            "not writable",
        ),
        (
            "mount -t tmpfs -o nr_inodes=1 none \"$(dirname \"$0\")\"",
            "no room",
        ),
        (
            "mount --bind \"$0\" \"$0\"; mount -o remount,bind,ro \"$0\"",
            "not writable",
        ),
    ] {
        child::run_with_mounts(mounts, scenario, &path);
    }
}

#[test]
fn a_file_that_is_no_database_is_an_error_and_is_not_changed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    for content in ["short", &"long".repeat(5000)] {
        fs::write(&path, content).expect("written");
        assert_refused(&path, "the file is not an SQLite database");
    }
}

#[test]
fn a_database_of_another_program_is_an_error_and_is_not_changed() {
    for statements in [
        "CREATE TABLE pets (id)",
        "PRAGMA application_id = 7; CREATE TABLE x (y)",
    ] {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("pets.db");
        sql::execute(&path, statements);
        assert_refused(&path, "the file is an SQLite database of another program");
    }
}

/// The service finds other damage when it reads the page, and the diagnosis finds all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_a_damaged_schema_or_without_its_end_is_an_error() {
    let (_folder, path) = closed_file().await;
    let intact = fs::read(&path).expect("read");
    let schema = [&intact[..100], &[0xff; 3000], &intact[3100..]].concat();
    for damaged in [&intact[..intact.len() / 2], &schema] {
        fs::write(&path, damaged).expect("written");
        assert_refused(&path, "the file is damaged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_process_locks_is_an_error_after_the_timeout() {
    let (_folder, path) = closed_file().await;
    let mut lock = sql::lock(&path);
    let (start, timeout) = (Instant::now(), Duration::from_millis(300));
    let error = SqliteFile::open(&path, FileUse::Write, timeout).expect_err("locked");
    assert!(
        error
            .to_string()
            .contains(": another process has locked the file"),
        "{error}"
    );
    assert!(start.elapsed() >= timeout, "{:?}", start.elapsed());
    lock.batch_execute("ROLLBACK").expect("rolled back");
    drop(open(&path));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_storages_share_a_file_which_has_no_log_after_both() {
    let one = Store::new();
    let path = one.path();
    one.add("one").await;
    // Another process adds in the same way.
    let two = Store::on(&path, settings());
    let (first, second) = (two.add("two").await, one.add("three").await);
    assert!(first.id() < second.id());
    assert_eq!(one.names().await, ["one", "two", "three"]);
    let folder = one.close().await;
    assert_eq!(
        files_in(folder.path()),
        ["pets.db", "pets.db-shm", "pets.db-wal"],
        "the other one has it open"
    );
    two.add("four").await;
    two.close().await;
    assert_eq!(files_in(folder.path()), ["pets.db"]);
    assert_eq!(
        Store::at(folder, settings()).names().await,
        ["one", "two", "three", "four"]
    );
}

#[test]
fn the_path_is_never_a_uri_or_a_name_of_sqlite() {
    let folder = TempDir::new().expect("a folder");
    for name in [":memory:", "file:pets.db?mode=memory"] {
        let script = format!("cd {}; exec \"$@\"", folder.path().display());
        child::run(&["sh", "-c", &script, "sh"], "no umask", Path::new(name));
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

/// A crash of a first start can leave one, before the file has a log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_applies_a_rollback_journal_that_a_crash_left() {
    let (_folder, path) = closed_file().await;
    let mut other = sql::connect(&path);
    let change = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; UPDATE pets SET name = 'changed'";
    other.batch_execute(change).expect("written in part");
    let (crashed, _) = copy_of_crash(&path);
    assert_eq!(files_in(crashed.path()), ["pets.db", "pets.db-journal"]);
    let store = Store::at(crashed, settings());
    let names = store.names().await;
    assert!(names.len() == 1000 && !names.contains(&"changed".to_owned()));
    assert_eq!(
        files_in(&store.path().with_file_name("")),
        ["pets.db", "pets.db-shm", "pets.db-wal"]
    );
}

#[test]
fn starts_and_ends_at_the_same_moment_lose_no_log_and_run_each_migration_once() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..60 {
                    let _file = open(&path);
                    sql::execute(
                        &path,
                        "INSERT INTO pets (name, category_id, created_at) VALUES ('Rex', 1, 1)",
                    );
                }
            });
        }
    });
    assert_eq!(
        files_in(folder.path()),
        ["pets.db"],
        "the last one closed the file"
    );
    assert_eq!(sql::number(&path, "SELECT count(*) FROM pets"), 240);
}
