//! Consistent views of the file, and copies of it.

use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_adapters_sqlite::SqliteBulkStorage;
use animal_store_app::{
    ApiKeyId, IdempotencyKey, PetDigest,
    ports::{BulkStorage, IdempotencyRecord},
    test_support::pet_named,
};

use crate::{
    bulk_support::{all, batch, bulk_pet, id, mode, names, new_storage, open},
    sql::execute,
    store::Store,
};

const HOUR: Duration = Duration::from_hours(1);

/// Returns a record whose expiry is a whole millisecond.
fn record(api_key: &str, text: &str, expires_at: SystemTime) -> IdempotencyRecord {
    let milliseconds = expires_at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    IdempotencyRecord {
        key: IdempotencyKey::new(ApiKeyId::new(api_key), text),
        pet_digest: PetDigest::from_pet(&pet_named(text)),
        pet_id: id(1),
        expires_at: UNIX_EPOCH + Duration::from_millis(u64::try_from(milliseconds).expect("a time")),
    }
}

#[tokio::test]
async fn pages_of_a_snapshot_are_in_order_of_id_and_show_no_later_change() {
    let (storage, folder) = new_storage();
    storage.add_pets(batch((1..=5).map(|number| bulk_pet(Some(number * 2), "a")))).await.expect("added");
    let mut snapshot = storage.snapshot().await.expect("a snapshot");
    storage.add_pets(batch([bulk_pet(Some(3), "b"), bulk_pet(None, "c")])).await.expect("added");
    execute(&folder.path().join("store.db"), "DELETE FROM pets WHERE id = 4");

    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = snapshot.pets(after, 2).await.expect("a page");
        ids.extend(page.iter().map(|stored| stored.pet.id().get()));
        after = page.last().map(|stored| stored.pet.id());
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(ids, [2, 4, 6, 8, 10]);
    drop(snapshot);
    assert_eq!(names(&storage).await.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [2, 3, 6, 8, 10, 11]);
}

#[tokio::test]
async fn a_snapshot_has_the_time_of_a_create() {
    let micros = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    let store = Store::new();
    let before = micros();
    store.add("Rex").await;
    let pets = all(&SqliteBulkStorage::new(open(&store.path()))).await;
    let created = u128::try_from(pets[0].created_at.micros()).expect("after 1970");
    assert!((before..=micros()).contains(&created), "{created}");
}

#[tokio::test]
async fn records_of_idempotency_keys_are_read_in_order_of_their_keys_without_expired_ones() {
    let (storage, _folder) = new_storage();
    let now = SystemTime::now();
    let mut records: Vec<_> = ["b", "a", "A", "a-b"]
        .iter()
        .flat_map(|api_key| ["1", "2", "3"].map(|text| record(api_key, text, now + HOUR)))
        .collect();
    let mut added = records.clone();
    added.push(record("a", "expired", now - HOUR));
    storage.add_idempotency_records(added).await.expect("added");
    records.sort_by(|one, other| one.key.cmp(&other.key));

    let mut snapshot = storage.snapshot().await.expect("a snapshot");
    let mut read: Vec<IdempotencyRecord> = Vec::new();
    loop {
        let after = read.last().map(|record| record.key.clone());
        let page = snapshot.idempotency_records(after, 5).await.expect("a page");
        let last = page.len() < 5;
        read.extend(page);
        if last {
            break;
        }
    }
    assert_eq!(read, records);
}

#[tokio::test]
async fn a_record_of_an_idempotency_key_replaces_only_an_expired_one() {
    let (storage, _folder) = new_storage();
    let now = SystemTime::now();
    let (valid, expired) = (record("key", "valid", now + HOUR), record("key", "expired", now - HOUR));
    storage.add_idempotency_records(vec![valid.clone(), expired.clone()]).await.expect("added");

    let changed = [&valid, &expired].map(|record| IdempotencyRecord {
        pet_id: id(2),
        expires_at: record.expires_at + 2 * HOUR,
        ..record.clone()
    });
    storage.add_idempotency_records(changed.to_vec()).await.expect("added");
    let read = storage.snapshot().await.expect("a snapshot").idempotency_records(None, 10).await.expect("records");
    assert_eq!(read.iter().find(|record| record.key == valid.key), Some(&valid));
    assert_eq!(read.iter().find(|record| record.key == expired.key), Some(&changed[1]));
}

#[tokio::test]
async fn a_snapshot_file_has_the_committed_content_and_can_be_opened() {
    let (storage, folder) = new_storage();
    storage.add_pets(batch([bulk_pet(Some(7), "a")])).await.expect("added");
    storage.add_idempotency_records(vec![record("key", "text", SystemTime::now() + HOUR)]).await.expect("added");
    let target = folder.path().join("snapshot.db");
    storage.write_snapshot(&target).await.expect("a snapshot");
    let content = all(&storage).await;
    storage.add_pets(batch([bulk_pet(None, "later")])).await.expect("added");

    assert_eq!(mode(&target), 0o600);
    let copy = SqliteBulkStorage::new(open(&target));
    assert_eq!(all(&copy).await, content);
    let records = copy.snapshot().await.expect("a snapshot").idempotency_records(None, 10).await.expect("records");
    assert_eq!(records.len(), 1);
    copy.add_pets(batch([bulk_pet(None, "b")])).await.expect("added");
    assert_eq!(names(&copy).await, [(7, "a".into()), (8, "b".into())]);
}

/// SQLite opens it without a log beside it.
#[tokio::test]
async fn a_snapshot_file_is_one_file() {
    let (storage, folder) = new_storage();
    let target = folder.path().join("snapshots");
    fs::create_dir(&target).expect("a folder");
    storage.write_snapshot(&target.join("snapshot.db")).await.expect("a snapshot");

    let names: Vec<_> =
        fs::read_dir(&target).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names, ["snapshot.db"]);
    let header = fs::read(target.join("snapshot.db")).expect("a file");
    assert_eq!(header[18..20], [1, 1], "the journal mode is not WAL");
}

#[tokio::test]
async fn a_snapshot_file_that_exists_is_not_replaced() {
    let (storage, folder) = new_storage();
    let target = folder.path().join("snapshot.db");
    fs::write(&target, "other").expect("a file");
    let error = storage.write_snapshot(&target).await.expect_err("the file exists");
    assert!(error.to_string().contains("exists"), "{error}");
    assert_eq!(fs::read_to_string(&target).expect("a file"), "other");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").filter(is_temporary).count(), 0);

    let error = storage.write_snapshot(&folder.path().join("missing/snapshot.db")).await.expect_err("no folder");
    assert!(error.to_string().contains("snapshot.db"), "{error}");
}

fn is_temporary(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().expect("an entry").file_name().to_string_lossy().starts_with('.')
}
