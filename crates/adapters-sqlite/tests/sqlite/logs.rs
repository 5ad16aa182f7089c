//! The log of a file: where it is, and what happens without it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use animal_store_adapters_sqlite::{SqliteFile, SqliteFileError};
use diesel::connection::SimpleConnection;
use tempfile::TempDir;

use crate::{
    sql,
    store::{Store, TIMEOUT, log_of, settings},
};

fn open(path: &Path) -> Result<SqliteFile, SqliteFileError> {
    SqliteFile::open(path, TIMEOUT)
}

/// Copies a file, by another process: a process that closes a file loses all its locks of it, also those of SQLite.
fn copy_file(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().expect("cp").success());
}

/// Copies a file that is in use, with its log if it is to have one.
fn copy_in_use(path: &Path, with_log: bool) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let copy = folder.path().join("copy.db");
    copy_file(path, &copy);
    if with_log {
        copy_file(&log_of(path), &log_of(&copy));
    }
    (folder, copy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_file_has_no_log() {
    let store = Store::new();
    store.add("Rex").await;
    assert!(log_of(&store.path()).exists());
    let folder = store.close().await;
    let names: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["pets.db"]);
    let store = Store::at(folder, settings());
    assert_eq!(store.names().await, ["Rex"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_in_use_is_opened_only_with_its_log() {
    let store = Store::new();
    store.add("Rex").await;
    let (folder, copy) = copy_in_use(&store.path(), false);
    for _ in 0..3 {
        let error = open(&copy).expect_err("the log is lost");
        assert!(matches!(error, SqliteFileError::LostLog { .. }), "{error}");
        assert!(error.to_string().contains("copy.db-wal"), "{error}");
        assert!(!log_of(&copy).exists(), "a start that fails leaves no empty log");
    }
    fs::write(log_of(&copy), "").expect("written");
    let error = open(&copy).expect_err("SQLite itself may have created an empty log");
    assert!(matches!(error, SqliteFileError::LostLog { .. }), "{error}");
    // An operator may accept the loss.
    fs::write(log_of(&copy), "lost\n").expect("written");
    drop(open(&copy).expect("the loss is accepted"));
    drop(open(&copy).expect("it was closed"));
    drop(folder);

    let (folder, copy) = copy_in_use(&store.path(), true);
    drop(open(&copy).expect("the log is there"));
    fs::rename(copy, folder.path().join("pets.db")).expect("renamed");
    assert_eq!(Store::at(folder, settings()).names().await, ["Rex"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_starts_without_the_log_none_succeeds() {
    let store = Store::new();
    store.add("Rex").await;
    for round in 0..20 {
        let (_folder, copy) = copy_in_use(&store.path(), false);
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let error = open(&copy).expect_err("the log is lost");
                    assert!(matches!(error, SqliteFileError::LostLog { .. }), "{round}: {error}");
                });
            }
        });
    }
}

/// SQLite creates an empty log for any program that reads the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_program_that_reads_the_file_does_not_hide_the_loss_of_its_log() {
    let store = Store::new();
    store.add("Rex").await;
    let (_folder, copy) = copy_in_use(&store.path(), false);
    let mut other = sql::connect(&copy);
    other.batch_execute("SELECT count(*) FROM sqlite_schema").expect("read");
    assert_eq!(log_of(&copy).metadata().expect("a log").len(), 0);
    let error = open(&copy).expect_err("the log is lost");
    assert!(matches!(error, SqliteFileError::LostLog { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_in_use_is_opened_although_another_program_has_emptied_its_log() {
    let store = Store::new();
    store.add("Rex").await;
    sql::execute(&store.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_eq!(log_of(&store.path()).metadata().expect("a log").len(), 0);
    let start = Instant::now();
    let one = open(&store.path()).expect("opened");
    assert!(start.elapsed() >= Duration::from_millis(200), "a start or an end may hold the lock for a moment");
    drop((one, open(&store.path()).expect("opened")));
    store.add("Tom").await;
    let folder = store.close().await;
    assert_eq!(Store::at(folder, settings()).names().await, ["Rex", "Tom"]);
}

/// A process that opens or closes the file holds one of these locks for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_log_stays_locked_is_an_error_after_the_timeout() {
    let store = Store::new();
    let (folder, in_use) = copy_in_use(&store.path(), true);
    let closed = folder.path().join("closed.db");
    let timeout = Duration::from_millis(300);
    for (path, alone) in [(&closed, false), (&closed, true), (&in_use, true)] {
        let mut other = sql::connect(path);
        other.batch_execute("PRAGMA journal_mode = WAL; SELECT count(*) FROM sqlite_schema").expect("read");
        let log = File::open(log_of(path)).expect("a log");
        if alone { log.lock() } else { log.lock_shared() }.expect("locked");
        let start = Instant::now();
        let error = SqliteFile::open(path, timeout).expect_err("locked");
        assert!(matches!(error, SqliteFileError::Locked { .. }), "{error}");
        assert!(start.elapsed() >= timeout, "{:?}", start.elapsed());
        drop(log);
        drop(open(path).expect("free"));
    }
}

/// The operator may put the right file back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_refuses_a_file_keeps_its_log() {
    let store = Store::new();
    store.add("Rex").await;
    // The log has only the pages of the next create, and not the first page.
    sql::execute(&store.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
    store.add("Tom").await;
    for (offset, text) in [(0, "not an SQLite database"), (68, "another program")] {
        let (_folder, copy) = copy_in_use(&store.path(), true);
        let log = fs::read(log_of(&copy)).expect("a log");
        let mut content = fs::read(&copy).expect("read");
        // The name of the format, or the id of the program.
        content[offset..offset + 4].fill(7);
        fs::write(&copy, content).expect("written");
        let error = open(&copy).expect_err("refused");
        assert!(error.to_string().contains(text), "{error}");
        assert!(fs::read(log_of(&copy)).is_ok_and(|content| content == log), "{text}: the log has changed");
    }
}

/// A snapshot is complete, although the file that it was made from is in use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_needs_no_log() {
    let store = Store::new();
    store.add("Rex").await;
    let folder = TempDir::new().expect("a folder");
    let snapshot = folder.path().join("pets.db");
    sql::execute(&store.path(), &format!("VACUUM INTO '{}'", snapshot.display()));
    assert_eq!(Store::at(folder, settings()).names().await, ["Rex"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_starts_with_a_snapshot_none_fails() {
    let store = Store::new();
    store.add("Rex").await;
    for round in 0..20 {
        let folder = TempDir::new().expect("a folder");
        let snapshot = folder.path().join("pets.db");
        sql::execute(&store.path(), &format!("VACUUM INTO '{}'", snapshot.display()));
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    open(&snapshot).unwrap_or_else(|error| panic!("{round}: {error}"));
                });
            }
        });
    }
}

#[test]
fn starts_and_ends_at_the_same_moment_lose_no_log() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let path = folder.path().join("pets.db");
    let threads: Vec<_> = (0..4)
        .map(|number: u64| {
            let path = path.clone();
            thread::spawn(move || {
                for round in 0..60 {
                    let file = open(&path).unwrap_or_else(|error| panic!("thread {number}, {round}: {error}"));
                    if (round + number).is_multiple_of(3) {
                        thread::park_timeout(Duration::from_millis(number));
                    }
                    drop(file);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no error");
    }
    assert!(!log_of(&path).exists(), "the last one closed the file");
}
