//! Starts with a file that was moved, lost or replaced, or that a symbolic link names: no log is removed.

use std::os::unix::fs::symlink;

use crate::{
    kills::{assert_stored, killed_file},
    prelude::*,
};

#[track_caller]
fn assert_lost(path: &Path) {
    assert_refused(
        path,
        "is missing, empty or replaced: the last pets may be in the log",
    );
}

#[tokio::test]
async fn after_a_kill_a_start_without_the_file_keeps_its_log() {
    let (folder, path, confirmed) = killed_file();
    let moved = path.with_extension("moved");
    rename(&path, &moved);
    assert_lost(&path);
    // An operator may have created it.
    write(&path, "");
    assert_lost(&path);
    // A backup has no log.
    let mut backup = read(&moved);
    backup[18..20].fill(1);
    write(&path, backup);
    assert_lost(&path);
    remove(&path);
    symlink(&moved, &path).expect("linked");
    assert_lost(&path);
    rename(&moved, &path);
    assert_stored(&Store::at(folder), &confirmed).await;
}

/// The operator may put the right file back.
#[tokio::test]
async fn after_a_crash_a_start_with_a_wrong_file_keeps_the_log() {
    let store = Store::new();
    store.add("Rex").await;
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    // The page of the next row, and not the first page of the file, is all that the log has.
    store.add("Tom").await;
    let (folder, path) = copy_of_crash(&store.path());
    let right = read(&path);
    let overwrite = |offset: usize| {
        let mut wrong = right.clone();
        wrong[offset..offset + 4].fill(7);
        write(&path, &wrong);
    };
    // The name of the format, and the id of the program.
    overwrite(0);
    assert_refused(&path, "the file is not an SQLite database");
    overwrite(68);
    assert_refused(&path, "the file is an SQLite database of another program");
    write(&path, right);
    assert_eq!(Store::at(folder).names().await, ["Rex", "Tom"]);
}

/// A file in a folder `data`, and symbolic links to it.
fn linked() -> (TempDir, PathBuf, [PathBuf; 2]) {
    let folder = new_folder();
    let [file, link, other] =
        ["data/pets.db", "link.db", "other.db"].map(|name| folder.path().join(name));
    fs::create_dir(folder.path().join("data")).expect("created");
    symlink("data/pets.db", &link).expect("linked");
    symlink(&link, &other).expect("linked");
    (folder, file, [link, other])
}

#[tokio::test]
async fn a_symbolic_link_to_a_file_is_used_like_the_file() {
    let (folder, file, links) = linked();
    drop(open(&file));
    for link in links {
        write(log_of(&link), "");
        let store = Store::on(&link);
        store.add("Rex").await;
        assert_eq!(
            files_in(&folder.path().join("data")),
            ["pets.db", "pets.db-shm", "pets.db-wal"]
        );
        let moved = file.with_extension("moved");
        rename(&file, &moved);
        store.try_add("refused").await.expect_err("moved");
        rename(&moved, &file);
        store.close().await;
        remove(log_of(&link));
        assert_eq!(files_in(folder.path()), ["data", "link.db", "other.db"]);
        assert_eq!(files_in(&folder.path().join("data")), ["pets.db"]);
    }
    assert_eq!(Store::on(&file).count().await, 2);
}

#[test]
fn a_symbolic_link_to_a_missing_file_is_an_error_that_creates_nothing() {
    let (folder, file, [link, other]) = linked();
    for link in [&link, &other] {
        assert_refused(link, "this is a link to a file that does not exist");
    }
    write(log_of(&file), "log");
    for link in [&link, &other] {
        assert_lost(link);
    }
    assert_eq!(files_in(folder.path()), ["data", "link.db", "other.db"]);
    assert_eq!(files_in(&folder.path().join("data")), ["pets.db-wal"]);
}
