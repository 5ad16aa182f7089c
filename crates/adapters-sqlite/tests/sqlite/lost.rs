//! Starts with a file that was moved, lost or replaced, or that a symbolic link names: no log is removed.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use animal_store_app::ports::{AddPetError, StoreFailure};
use tempfile::TempDir;

use crate::{
    kills::{Adder, assert_stored, killed_file},
    sql,
    store::{self, Store, copy_of_crash, files_in, log_of, open_in_each_way, settings},
};

/// Returns the names, inodes and contents of a file and its log.
pub(crate) fn files(path: &Path) -> [Option<(u64, Option<Vec<u8>>)>; 2] {
    [path, &log_of(path)].map(|path| path.metadata().ok().map(|metadata| (metadata.ino(), fs::read(path).ok())))
}

/// Asserts that each way to open the path fails with this text, and changes neither the file nor its log.
#[track_caller]
fn assert_refused(path: &Path, text: &str) {
    let before = files(path);
    for opened in open_in_each_way(path) {
        let error = opened.expect_err("refused");
        assert!(error.to_string().contains(text), "{error}");
        assert!(files(path) == before, "the file or the log has changed");
    }
}

#[track_caller]
fn assert_lost(path: &Path) {
    assert_refused(path, "is missing, empty or replaced: the last pets may be in the log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_a_start_without_the_file_keeps_its_log() {
    let (folder, path, confirmed) = killed_file();
    let moved = path.with_extension("moved");
    fs::rename(&path, &moved).expect("renamed");
    assert_lost(&path);
    // An operator may have created it.
    fs::write(&path, "").expect("written");
    assert_lost(&path);
    // A backup has no log.
    let mut backup = fs::read(&moved).expect("read");
    backup[18..20].fill(1);
    fs::write(&path, backup).expect("written");
    assert_lost(&path);
    fs::remove_file(&path).expect("removed");
    symlink(&moved, &path).expect("linked");
    assert_lost(&path);
    fs::rename(&moved, &path).expect("renamed");
    assert_stored(&Store::at(folder, settings()), &confirmed).await;
}

/// The operator may put the right file back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_a_start_with_a_wrong_file_keeps_the_log() {
    let store = Store::new();
    store.add("Rex").await;
    sql::execute(&store.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
    // The page of the next row, and not the first page of the file, is all that the log has.
    store.add("Tom").await;
    let (folder, path) = copy_of_crash(&store.path());
    let right = fs::read(&path).expect("read");
    let overwrite = |offset: usize| {
        let mut wrong = right.clone();
        wrong[offset..offset + 4].fill(7);
        fs::write(&path, &wrong).expect("written");
    };
    // The name of the format, and the id of the program.
    overwrite(0);
    assert_refused(&path, "the file is not an SQLite database");
    overwrite(68);
    assert_refused(&path, "the file is an SQLite database of another program");
    fs::write(&path, right).expect("written");
    assert_eq!(Store::at(folder, settings()).names().await, ["Rex", "Tom"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_while_the_file_is_moved_nothing_confirmed_is_lost() {
    let folder = TempDir::new().expect("a folder");
    let (path, moved) = (folder.path().join("pets.db"), folder.path().join("moved.db"));
    let mut adder = Adder::start(&path);
    adder.read(50);
    fs::rename(&path, &moved).expect("renamed");
    let refused = adder.read_until_refused();
    assert!(refused.contains("moved, removed or replaced"), "{refused}");
    let confirmed = adder.kill();
    assert!(confirmed.len() >= 50);
    assert_lost(&path);
    fs::rename(&moved, &path).expect("renamed");
    assert_stored(&Store::at(folder, settings()), &confirmed).await;
}

/// A file in a folder `data`, and symbolic links to it.
fn linked() -> (TempDir, PathBuf, [PathBuf; 2]) {
    let folder = TempDir::new().expect("a folder");
    let [file, link, other] = ["data/pets.db", "link.db", "other.db"].map(|name| folder.path().join(name));
    fs::create_dir(folder.path().join("data")).expect("created");
    symlink("data/pets.db", &link).expect("linked");
    symlink(&link, &other).expect("linked");
    (folder, file, [link, other])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_symbolic_link_to_a_file_is_used_like_the_file() {
    let (folder, file, links) = linked();
    drop(store::open(&file));
    for link in links {
        let store = Store::on(&link, settings());
        let pet = store.add("Rex").await;
        assert_eq!(files_in(&folder.path().join("data")), ["pets.db", "pets.db-shm", "pets.db-wal"]);
        let moved = file.with_extension("moved");
        fs::rename(&file, &moved).expect("renamed");
        let error = store.try_add("refused").await.expect_err("moved");
        assert!(matches!(error, AddPetError::Store(StoreFailure::Unavailable(_))), "{error:?}");
        store.readiness.check().await.expect_err("moved");
        fs::rename(&moved, &file).expect("renamed");
        assert!(store.add("Tom").await.id() > pet.id());
        store.close().await;
        assert_eq!(files_in(folder.path()), ["data", "link.db", "other.db"]);
        assert_eq!(files_in(&folder.path().join("data")), ["pets.db"]);
    }
    assert_eq!(Store::on(&file, settings()).count().await, 4);
}

#[test]
fn a_symbolic_link_to_a_missing_file_is_an_error_that_creates_nothing() {
    let (folder, file, [link, other]) = linked();
    for link in [&link, &other] {
        assert_refused(link, "the file does not exist");
    }
    fs::write(log_of(&file), "log").expect("written");
    for link in [&link, &other] {
        assert_lost(link);
    }
    assert_eq!(files_in(folder.path()), ["data", "link.db", "other.db"]);
    assert_eq!(files_in(&folder.path().join("data")), ["pets.db-wal"]);
}
