//! Files that cannot be used, each with an error that says what to do.

use std::{
    os::unix::{fs::symlink, net::UnixListener},
    thread,
};

use animal_store_app::Verdict;
use nix::{sys::stat::Mode, unistd::mkfifo};

use crate::{child, prelude::*, store};

/// A closed file with some pets.
async fn file_with_pets() -> (TempDir, PathBuf) {
    let store = Store::new();
    store.add_many().await;
    let path = store.path();
    (store.close().await, path)
}

#[tokio::test]
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
    let modes = [path.to_owned(), log_of(path), index_of(path)].map(|path| mode(&path));
    assert_eq!(modes, [0o600; 3]);
}

#[test]
fn a_file_is_created_for_its_owner_only_under_any_umask() {
    for umask in ["umask 0", "umask 0777"] {
        let (_folder, path) = new_path();
        child::run_after(umask, "no umask", &path);
    }
}

#[test]
fn a_path_that_names_no_file_that_can_be_created_is_an_error() {
    let folder = new_folder();
    let path = |name| folder.path().join(name);
    write(path("file"), "");
    symlink(path("loop.db"), path("loop.db")).expect("linked");
    for (name, text) in [
        ("missing/pets.db", "the folder does not exist"),
        ("file/pets.db", "the folder does not exist"),
        // It cannot be examined, and is not said to be missing.
        ("loop.db", "this user cannot read and write"),
    ] {
        expect_error(&path(name), text);
    }
    assert_refused(folder.path(), "this is a folder");
}

#[test]
fn what_is_not_a_file_is_refused_without_a_wait() {
    let folder = new_folder();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    for path in [&pipe, &socket] {
        for opened in store::open_in_each_way(path) {
            let error = opened.expect_err("refused").to_string();
            assert!(
                error.contains("this is a pipe, a device or a socket"),
                "{error}"
            );
        }
    }
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
    let opened = SqliteFile::open(path, FileUse::Create, TIMEOUT);
    let error = opened.expect_err(text).to_string();
    let start = format!("{}: {text}", path.display());
    assert!(error.starts_with(&start), "{error}");
    error
}

#[tokio::test]
async fn a_file_that_cannot_be_created_or_written_is_an_error() {
    let (_folder, path) = file_with_pets().await;
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
fn a_file_that_is_no_database_of_this_program_is_an_error_and_is_not_changed() {
    for content in ["short", &"long".repeat(5000)] {
        let (_folder, path) = new_path();
        write(&path, content);
        assert_refused(&path, "the file is not an SQLite database");
    }
    for statements in [
        "CREATE TABLE pets (id)",
        "PRAGMA application_id = 7; CREATE TABLE x (y)",
    ] {
        let (_folder, path) = new_path();
        sql::execute(&path, statements);
        assert_refused(&path, "the file is an SQLite database of another program");
    }
}

/// The service finds other damage when it reads the page, and the diagnosis finds all of it.
#[tokio::test]
async fn a_file_with_a_damaged_schema_or_without_its_end_is_an_error() {
    let (_folder, path) = file_with_pets().await;
    let intact = read(&path);
    let schema = [&intact[..100], &[0xff; 3000], &intact[3100..]].concat();
    for damaged in [&intact[..intact.len() / 2], &schema] {
        write(&path, damaged);
        assert_refused(&path, "the file is damaged");
    }
}

#[test]
fn a_file_that_another_process_locks_is_an_error_after_the_timeout() {
    let (_folder, path) = new_path();
    drop(open(&path));
    let lock = sql::lock(&path);
    let start = Instant::now();
    let timeout = Duration::from_millis(300);
    let opened = SqliteFile::open(&path, FileUse::Write, timeout);
    let error = opened.expect_err("locked").to_string();
    let text = ": another process has locked the file";
    assert!(error.contains(text), "{error}");
    assert!(start.elapsed() >= timeout);
    drop(lock);
    drop(open(&path));
}

/// Runs in another process.
pub(crate) fn expect_locked(path: &Path) {
    let opened = SqliteFile::open(path, FileUse::Write, Duration::from_millis(500));
    let error = opened.expect_err("locked").to_string();
    assert!(error.contains("another process has locked"), "{error}");
}

/// SQLite does not wait before it switches a backup to a log.
#[test]
fn a_start_that_waits_for_a_locked_backup_does_not_use_up_its_descriptors() {
    let (_folder, path) = closed_file();
    sql::execute(&path, "PRAGMA journal_mode = DELETE");
    let _lock = sql::lock(&path);
    child::run_after("ulimit -n 200", "locked", &path);
}

const OPEN: [&str; 3] = ["pets.db", "pets.db-shm", "pets.db-wal"];

#[tokio::test]
async fn two_storages_share_a_file_which_has_no_log_after_both() {
    let one = Store::new();
    let path = one.path();
    one.add("one").await;
    // Another process adds in the same way.
    let two = Store::on(&path);
    let first = two.add("two").await;
    let second = one.add("three").await;
    assert!(first.id() < second.id());
    assert_eq!(one.names().await, ["one", "two", "three"]);

    let folder = one.close().await;
    assert_eq!(files_in(folder.path()), OPEN, "the other one has it open");
    two.add("four").await;
    two.close().await;
    assert_eq!(files_in(folder.path()), ["pets.db"]);
    let names = Store::at(folder).names().await;
    assert_eq!(names, ["one", "two", "three", "four"]);
}

#[tokio::test]
async fn of_a_file_with_several_hard_links_only_a_name_with_a_log_can_be_used() {
    let (_folder, path) = closed_file();
    let other = path.with_extension("other");
    fs::hard_link(&path, &other).expect("linked");
    for name in [&path, &other] {
        assert_refused(name, "the file has several names (hard links)");
    }
    // As a backup, which has no log.
    sql::execute(&path, "PRAGMA journal_mode = DELETE");
    for (usage, is_opened) in [(FileUse::Read, true), (FileUse::Write, false)] {
        let opened = SqliteFile::open(&other, usage, Duration::ZERO);
        assert_eq!(opened.is_ok(), is_opened, "{usage:?}");
    }
    remove(&other);
    let store = Store::on(&path);
    // Only the name with the log can be used.
    fs::hard_link(&path, &other).expect("linked");
    store.add("Rex").await;
    store.readiness.check().await.expect("ready");
    Store::on(&path).add("Tom").await;
    assert_refused(&other, "the file has several names (hard links)");
}

#[test]
fn the_path_is_never_a_uri_or_a_name_of_sqlite() {
    let folder = new_folder();
    for name in [":memory:", "file:pets.db?mode=memory"] {
        let script = format!("cd {}", folder.path().display());
        child::run_after(&script, "no umask", Path::new(name));
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

/// A crash of a first start can leave one, before the file has a log.
#[tokio::test]
async fn a_start_applies_a_rollback_journal_that_a_crash_left() {
    let (_folder, path) = file_with_pets().await;
    let mut other = sql::connect(&path);
    let change = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; UPDATE pets SET name = 'changed'";
    other.batch_execute(change).expect("written in part");
    let (crashed, path) = copy_of_crash(&path);
    assert_eq!(files_in(crashed.path()), ["pets.db", "pets.db-journal"]);
    let read = SqliteFile::open(&path, FileUse::Read, TIMEOUT).expect_err("it cannot be applied");
    assert!(
        read.to_string().contains("a crash left a journal"),
        "{read}"
    );
    let findings = diagnose(&path, TIMEOUT).await;
    assert_eq!(findings[0].verdict, Verdict::Warning, "{findings:?}");
    let store = Store::on(&path);
    let names = store.names().await;
    assert!(names.len() == 1000 && !names.contains(&"changed".to_owned()));
    assert_eq!(files_in(crashed.path()), OPEN);
}

#[test]
fn a_file_that_a_killed_command_was_creating_is_created_by_the_next_one() {
    let (_folder, path) = new_path();
    let mut other = sql::connect(&path);
    let create = "PRAGMA cache_size = 1; BEGIN; CREATE TABLE pets (id); INSERT INTO pets VALUES (zeroblob(100000))";
    other.batch_execute(create).expect("written in part");
    let (crashed, path) = copy_of_crash(&path);
    assert_eq!(files_in(crashed.path()), ["pets.db", "pets.db-journal"]);
    SqliteFile::open(&path, FileUse::WriteOrCreate, TIMEOUT).expect("created");
}

#[test]
fn starts_and_ends_at_the_same_moment_lose_no_log_and_run_each_migration_once() {
    // Each start keeps descriptors until the process ends. Debian permits 1024 by default.
    rlimit::increase_nofile_limit(8192).expect("a limit");
    let (folder, path) = new_path();
    let insert = "INSERT INTO pets (name, category_id, created_at) VALUES ('Rex', 1, 1)";
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..60 {
                    let _file = open(&path);
                    sql::execute(&path, insert);
                }
            });
        }
    });
    let left = files_in(folder.path());
    assert_eq!(left, ["pets.db"], "the last one closed the file");
    assert_eq!(sql::number(&path, "SELECT count(*) FROM pets"), 240);
}
