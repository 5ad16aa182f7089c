//! Bulk access and backups. The contract owns the other rules.

use std::{fs, path::Path};

use animal_store_adapters_sqlite::{
    FileUse, NewBackup, SqliteApiKeyStore, SqliteBulkStorage, SqliteFile,
};
use animal_store_app::{
    ports::{ApiKeyStore, BulkStorage, StoreFailure, StoredPet},
    test_support::{
        api_key,
        key_changes::{add, new_token},
        stored_pets,
    },
};
use tempfile::TempDir;

use crate::{
    child,
    sql::execute,
    store::{Store, TIMEOUT, files_in, mode, open, settings},
};

fn new_storage() -> (SqliteBulkStorage, SqliteFile, TempDir) {
    let folder = TempDir::new().expect("a folder");
    let file = open(&folder.path().join("store.db"));
    (SqliteBulkStorage::new(&file), file, folder)
}

async fn all(storage: &SqliteBulkStorage) -> Vec<StoredPet> {
    let snapshot = storage.snapshot().await.expect("a snapshot");
    snapshot.pets(None, 1000).await.expect("pets")
}

#[tokio::test]
async fn an_invalid_row_is_reported_with_its_id() {
    for (sql, problem) in [
        ("INSERT INTO pets VALUES (5, ' ', 1, NULL, 0)", "id 5"),
        ("INSERT INTO pets VALUES (-5, 'Rex', 1, NULL, 0)", "id -5"),
        ("INSERT INTO pets VALUES (5, 'Rex', 1, NULL, -1)", "id 5"),
    ] {
        let (storage, file, _folder) = new_storage();
        execute(file.path(), sql);
        let snapshot = storage.snapshot().await.expect("a snapshot");
        let pets = snapshot.pets(None, 10).await;
        let Err(StoreFailure::Corrupt(cause)) = pets else {
            panic!("{sql}: {pets:?}")
        };
        assert!(cause.to_string().contains(problem), "{cause}");
    }
}

#[track_caller]
fn assert_is_backup(path: &Path) {
    assert_eq!(files_in(path.parent().expect("a folder")), ["backup.db"]);
    assert_eq!(mode(path), 0o600);
    assert_eq!(
        fs::read(path).expect("read")[18..20],
        [1, 1],
        "the journal mode is not WAL"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_one_file_for_its_owner_and_a_store_of_its_own() {
    let (storage, file, _folder) = new_storage();
    storage.add_pets(stored_pets([1, 7])).await.expect("added");
    let keys = SqliteApiKeyStore::new(file.clone());
    keys.change(add("key", "token", None), "test")
        .await
        .expect("added");
    let read_only = SqliteFile::open(file.path(), FileUse::Read, TIMEOUT).expect("a file");
    for file in [file.clone(), read_only] {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("backup.db");
        let backup = NewBackup::create(&path).expect("a backup");
        assert_eq!(backup.vacuum_from(file).await.expect("written"), 2);
        backup.finish().expect("finished");
        assert_is_backup(&path);
        let copy =
            SqliteFile::open(&path, FileUse::Write, TIMEOUT).expect("no migration is pending");
        assert_eq!(
            all(&SqliteBulkStorage::new(&copy)).await,
            stored_pets([1, 7])
        );
        let copied = SqliteApiKeyStore::new(copy.clone());
        let listed = keys.list().await.expect("listed");
        assert_eq!(copied.list().await.expect("listed"), listed);
        let first = copied.add_first(api_key("first"), new_token("first", None), "test");
        assert!(!first.await.expect("no key"));
        let store = Store::over(copy, settings());
        assert_eq!(store.add("Rex").await.id().get(), 8);
        store.close().await;
    }
}

pub(crate) fn create_partial_backup(path: &Path) {
    let backup = NewBackup::create(path).expect("a backup");
    let partial = backup.path();
    assert_eq!(mode(partial.parent().expect("a folder")), 0o700);
}

#[test]
fn the_folder_of_a_partial_backup_is_closed_under_any_umask() {
    for umask in ["0", "0777"] {
        let folder = TempDir::new().expect("a folder");
        let script = format!("umask {umask}; exec \"$@\"");
        let path = folder.path().join("backup.db");
        child::run(&["sh", "-c", &script, "sh"], "partial backup", &path);
    }
}

/// A copy from PostgreSQL writes its backup in this way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_can_be_written_as_a_store() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("backup.db");
    let backup = NewBackup::create(&path).expect("a backup");
    let storage = SqliteBulkStorage::new(&open(&backup.path()));
    storage.add_pets(stored_pets([3])).await.expect("added");
    drop(storage);
    backup.finish().expect("finished");
    assert_is_backup(&path);
    assert_eq!(
        all(&SqliteBulkStorage::new(&open(&path))).await,
        stored_pets([3])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_replaces_no_file_and_leaves_nothing_if_it_fails_or_is_dropped() {
    let (_, file, _folder) = new_storage();
    let folder = TempDir::new().expect("a folder");
    let target = folder.path().join("backup.db");
    let error = NewBackup::create(&folder.path().join("missing/backup.db"))
        .err()
        .expect("no folder");
    assert!(error.to_string().contains("missing/backup.db"), "{error}");

    let backup = NewBackup::create(&target).expect("a backup");
    backup.vacuum_from(file.clone()).await.expect("written");
    assert!(!target.exists(), "it is not complete");
    drop(backup);
    assert_eq!(files_in(folder.path()), [""; 0]);

    let backup = NewBackup::create(&target).expect("a backup");
    backup.vacuum_from(file.clone()).await.expect("written");
    fs::write(&target, "other").expect("written");
    let error = backup.finish().expect_err("the target exists by now");
    assert!(error.to_string().contains("exists"), "{error}");
    let error = NewBackup::create(&target).err().expect("the target exists");
    assert!(error.to_string().contains("exists"), "{error}");
    assert_eq!(files_in(folder.path()), ["backup.db"]);
    assert_eq!(fs::read_to_string(&target).expect("read"), "other");
}
