//! Rows in bulk: they are read as they were written, and an invalid one is reported by its place.

use std::time::Duration;

use animal_store_app::ports::{BulkStorage, StoreFailure, StoredPet};
use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus};
use proptest::{collection::btree_map, option, prelude::*, sample::select, test_runner::TestRunner};
use tokio::runtime::Builder;

use crate::{
    bulk_fixture::{bulk, record},
    explain::empty_tables,
    outcomes::reason,
    sql_session::SqlSession,
};

/// The last microsecond of the year 9999.
const LAST_MICROSECOND: i64 = 253_402_300_799_999_999;

/// A pet and its creation time, in microseconds.
fn any_pet() -> impl Strategy<Value = (NewPet, i64)> {
    let name = any::<String>().prop_filter_map("a name", |text| PetName::parse(&text).ok());
    let pet = (name, any::<i64>(), option::of(select(&PetStatus::ALL)))
        .prop_map(|(name, category, status)| NewPet::new(name, CategoryId::new(category)).with_status(status));
    (pet, 0..=LAST_MICROSECOND)
}

#[test]
fn pets_with_any_ids_names_and_times_are_read_as_they_were_written() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let database = runtime.block_on(empty_tables());
    let bulk = bulk(database.url());
    let usual = ProptestConfig::default();
    let config = ProptestConfig { cases: usual.cases.div_ceil(10), failure_persistence: None, ..usual };
    let batches = btree_map(1..i64::MAX, any_pet(), 0..30);
    let tested = TestRunner::new(config).run(&batches, |batch| {
        database.sql("TRUNCATE pets");
        let pets = batch.into_iter().map(|(id, (pet, micros))| StoredPet {
            pet: Pet::new(PetId::parse(id).expect("an id"), pet),
            created_at: CreationTime::parse(micros).expect("a time"),
        });
        let pets: Vec<_> = pets.collect();
        let read = runtime.block_on(async {
            bulk.add_pets(pets.clone()).await.expect("added");
            bulk.snapshot().await.expect("a snapshot").pets(None, 100).await.expect("pets")
        });
        prop_assert_eq!(read, pets);
        Ok(())
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
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
        let error = bulk.snapshot().await.expect("a snapshot").pets(None, 10).await.expect_err(row);
        assert!(matches!(error, StoreFailure::Corrupt(_)), "{error:?}");
        let text = reason(&error);
        assert!(text.contains(&format!(": table pets, column {column}, id 2: ")), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_replaces_only_an_expired_one() {
    let database = empty_tables().await;
    let (bulk, hour) = (bulk(database.url()), Duration::from_hours(1));
    let [expired, kept, other] = [record("1", 1, Duration::ZERO), record("1", 2, hour), record("1", 3, hour)];
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
    for change in ["api_key_id = 'a b'", "key_digest = 'x'", "pet_digest = 'x'", "pet_id = 0"] {
        bulk.add_idempotency_records(vec![record("1", 7, Duration::from_hours(1))]).await.expect("added");
        session.run(&format!("UPDATE idempotency_keys SET {change}")).await;
        let read = bulk.snapshot().await.expect("a snapshot").idempotency_records(None, 10).await;
        let error = read.expect_err(change);
        let column = change.split(' ').next().expect("a column");
        assert!(matches!(error, StoreFailure::Corrupt(_)), "{error:?}");
        assert!(reason(&error).contains(&format!("{column} is not valid")), "{error:?}");
        session.run("DELETE FROM idempotency_keys").await;
    }
}
