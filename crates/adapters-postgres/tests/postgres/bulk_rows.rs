//! Rows in bulk: they are read as they were written, and an invalid one is reported by its place.

use std::time::Duration;

use animal_store_app::{
    ports::{BulkPet, BulkStorage, BulkStorageError, StoredPet},
    test_support::MemoryBulkStorage,
};
use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetName, PetStatus};
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestRunner};

use crate::{
    bulk_fixture::{batch, bulk, created, id, pets, record, with_id, without_id},
    explain::empty_tables,
    outcomes::reason,
    sql_session::SqlSession,
};

/// The last microsecond of the year 9999.
const LAST_MICROSECOND: i64 = 253_402_300_799_999_999;

fn stored_pet() -> impl Strategy<Value = StoredPet> {
    let name = any::<String>().prop_filter_map("a name", |text| PetName::parse(&text).ok());
    let pet = (name, any::<i64>(), option::of(select(&PetStatus::ALL)))
        .prop_map(|(name, category, status)| NewPet::new(name, CategoryId::new(category)).with_status(status));
    (prop_oneof![1..50_i64, 1..i64::MAX], pet, 0..=LAST_MICROSECOND).prop_map(|(number, pet, micros)| StoredPet {
        pet: Pet::new(id(number), pet),
        created_at: CreationTime::parse(micros).expect("a time"),
    })
}

fn bulk_pet(stored: &StoredPet) -> BulkPet {
    let pet = stored.pet.new_pet().clone();
    BulkPet { id: Some(stored.pet.id()), pet, created_at: Some(stored.created_at) }
}

#[test]
fn pets_with_any_ids_names_and_times_are_read_as_they_were_written() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let database = runtime.block_on(empty_tables());
    let bulk = bulk(database.url());
    let usual = ProptestConfig::default();
    let config = ProptestConfig { cases: usual.cases.div_ceil(10), failure_persistence: None, ..usual };
    let batches = vec(vec(stored_pet(), 0..30), 1..4);
    let tested = TestRunner::new(config).run(&(batches, 1..40_usize), |(batches, page)| {
        database.sql("TRUNCATE pets");
        let memory = MemoryBulkStorage::default();
        runtime.block_on(async {
            for mut pets in batches {
                // Ids that are given are distinct.
                pets.sort_by_key(|stored| stored.pet.id());
                pets.dedup_by_key(|stored| stored.pet.id());
                let batch = batch(pets.iter().map(bulk_pet).collect());
                // The second time, all of them exist or are taken.
                for _ in 0..2 {
                    let expected = memory.add_pets(batch.clone()).await.expect("added");
                    prop_assert_eq!(bulk.add_pets(batch.clone()).await.expect("added"), expected);
                }
            }
            let expected = pets(&memory, 1000).await.expect("pets");
            prop_assert_eq!(pets(&bulk, page).await.expect("pets"), expected);
            Ok(())
        })
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_time_is_stored_to_the_microsecond() {
    let database = empty_tables().await;
    let pets = vec![created(5, with_id(1, "a")), created(LAST_MICROSECOND, without_id("b"))];
    bulk(database.url()).add_pets(batch(pets)).await.expect("added");
    let rows = database.sql("SELECT id, extract(epoch FROM created_at) FROM pets ORDER BY id");
    assert_eq!(rows, "1|0.000005\n2|253402300799.999999");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_row_is_reported_by_its_place() {
    let database = empty_tables().await;
    let bulk = bulk(database.url());
    for (column, row) in [
        ("created_at", "('secret', 1, 'infinity')"),
        ("created_at", "('secret', 1, '-infinity')"),
        ("created_at", "('secret', 1, '1969-12-31 23:59:59.999999+00')"),
        ("created_at", "('secret', 1, '10000-01-01 00:00:00+00')"),
        ("name", r"(E'secret\u0007', 1, now())"),
    ] {
        database.sql("TRUNCATE pets RESTART IDENTITY; INSERT INTO pets (name, category_id) VALUES ('Rex', 1)");
        database.sql(&format!("INSERT INTO pets (name, category_id, created_at) VALUES {row}"));
        let exported = pets(&bulk, 10).await.expect_err(row);
        let compared = bulk.add_pets(batch(vec![with_id(2, "other")])).await.expect_err(row);
        for error in [exported, compared] {
            assert!(matches!(error, BulkStorageError::Corrupt(_)), "{error:?}");
            let text = reason(&error);
            assert!(text.contains(&format!(": table pets, column {column}, id 2: ")), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_replaces_only_an_expired_one() {
    let database = empty_tables().await;
    let (bulk, hour) = (bulk(database.url()), Duration::from_hours(1));
    let [expired, kept, other] =
        [record("a", "1", 1, Duration::ZERO), record("a", "1", 2, hour), record("a", "1", 3, hour)];
    for record in [expired, kept.clone(), other] {
        bulk.add_idempotency_records(vec![record]).await.expect("added");
    }
    let read = bulk.snapshot().await.expect("a snapshot").idempotency_records(None, 10).await;
    assert_eq!(read.expect("records"), [kept]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_record_is_reported_by_its_place() {
    let database = empty_tables().await;
    let (bulk, session) = (bulk(database.url()), SqlSession::of(&database).await);
    for change in
        ["api_key_id = 'a b'", "key_digest = 'x'", "pet_digest = 'x'", "pet_id = 0", "expires_at = 'infinity'"]
    {
        bulk.add_idempotency_records(vec![record("shop", "1", 7, Duration::from_hours(1))]).await.expect("added");
        session.run(&format!("UPDATE idempotency_keys SET {change}")).await;
        let read = bulk.snapshot().await.expect("a snapshot").idempotency_records(None, 10).await;
        if change.starts_with("expires_at") {
            // Such a record never expires.
            assert!(read.is_ok(), "{read:?}");
        } else {
            let error = read.expect_err(change);
            let column = change.split(' ').next().expect("a column");
            assert!(matches!(error, BulkStorageError::Corrupt(_)), "{error:?}");
            assert!(reason(&error).contains(&format!("{column} is not valid")), "{error:?}");
        }
        session.run("DELETE FROM idempotency_keys").await;
    }
}
