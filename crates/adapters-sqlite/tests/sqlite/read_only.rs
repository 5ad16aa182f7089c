//! A file that is opened to be read.

use crate::{
    kills::{assert_stored, killed_file},
    prelude::*,
};

/// Opens a file to be read.
fn open_to_read(path: &Path) -> (SqliteFile, Store) {
    let file = SqliteFile::open(path, FileUse::Read, TIMEOUT).expect("a file");
    (file.clone(), Store::over(file, settings()))
}

/// Returns the number of pets.
async fn read_in_every_way(path: &Path) -> usize {
    let (file, store) = open_to_read(path);
    let count = store.count().await;
    store.readiness.check().await.expect("ready");
    let snapshot = SqliteBulkStorage::new(&file).snapshot().await;
    let snapshot = snapshot.expect("a snapshot");
    let pets = snapshot.pets(None, usize::MAX).await.expect("pets");
    assert_eq!(pets.len(), count);
    let records = snapshot.idempotency_records(None, 10).await;
    records.expect("records");
    SqliteApiKeyStore::new(file).list().await.expect("listed");
    diagnose(path, TIMEOUT).await;
    store.close().await;
    count
}

/// Tries to change a file that was opened to be read.
async fn try_to_change(path: &Path) {
    let (file, store) = open_to_read(path);
    assert_fails(store.try_add("refused").await, UNAVAILABLE);
    let keys = SqliteApiKeyStore::new(file.clone());
    let add = key_changes::add("key", "key", None);
    assert_fails(keys.change(add, "test").await, UNAVAILABLE);
    let bulk = SqliteBulkStorage::new(&file);
    assert_fails(bulk.add_pets(stored_pets([1_000_000])).await, UNAVAILABLE);
    drop((bulk, keys));
    store.close().await;
}

/// SQLite creates an empty log and its index, which it cannot remove without a permission to write.
#[tokio::test]
async fn reading_a_closed_file_changes_no_byte_of_it() {
    let store = Store::new();
    store.add("Rex").await;
    let path = store.path();
    let folder = store.close().await;
    let content = read(&path);
    assert_eq!(read_in_every_way(&path).await, 1);
    try_to_change(&path).await;
    assert!(read(&path) == content);
    assert_eq!(
        files_in(folder.path()),
        ["pets.db", "pets.db-shm", "pets.db-wal"]
    );
    assert_eq!(log_of(&path).metadata().expect("a log").len(), 0);
    let index = folder.path().join("pets.db-shm");
    assert_eq!([mode(&index), mode(&log_of(&path))], [0o600; 2]);

    let store = Store::at(folder);
    store.add("Tom").await;
    let folder = store.close().await;
    assert_eq!(files_in(folder.path()), ["pets.db"]);
    assert_eq!(Store::at(folder).names().await, ["Rex", "Tom"]);
}

#[tokio::test]
async fn reading_a_file_after_a_kill_changes_no_byte_of_it_and_of_its_log() {
    let (folder, path, confirmed) = killed_file();
    let contents = || [&path, &log_of(&path)].map(|path| read(path));
    let before = contents();
    assert!(read_in_every_way(&path).await >= confirmed.len());
    try_to_change(&path).await;
    assert!(contents() == before);
    let store = Store::at(folder);
    assert_stored(&store, &confirmed).await;
    store.add("later").await;
}
