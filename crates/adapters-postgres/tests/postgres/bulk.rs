//! Bulk access: pets that keep their ids beside creates, invalid rows, and snapshots. The contract suite reads valid
//! rows as they were written, and adds pets during concurrent creates.

use std::time::{SystemTime, UNIX_EPOCH};

use animal_store_adapters_postgres::PgBulkStorage;
use animal_store_app::{
    IdempotencyKey, PetDigest, ports::IdempotencyRecord, test_support::pet_named,
};

use crate::{
    explain::{explain, nodes, number, session, settings_and_statement, trap},
    prelude::*,
};

pub(crate) fn bulk(url: &str) -> PgBulkStorage {
    bulk_with(url, settings())
}

pub(crate) fn bulk_with(url: &str, settings: PostgresSettings) -> PgBulkStorage {
    PgBulkStorage::new(endpoint(url), migrations(url), settings)
}

/// The record of a create with an idempotency key, for an hour.
pub(crate) fn record(pet_id: i64) -> IdempotencyRecord {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let end = now.expect("after 1970") + Duration::from_hours(1);
    IdempotencyRecord {
        key: IdempotencyKey::new(api_key_id("shop"), "key"),
        pet_digest: PetDigest::from_pet(&pet_named("Rex")),
        pet_id: PetId::parse(pet_id).expect("an id"),
        expires_at: UNIX_EPOCH + Duration::from_secs(end.as_secs()),
    }
}

/// The create has taken its id from the sequence, and its row is not inserted yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_waits_for_the_creates_in_flight() {
    Fixture::in_both_modes(async |fixture| {
        let bulk = bulk(fixture.database.url());
        let observer = &fixture.observer;
        fixture
            .trigger("IF NEW.name = 'slow' THEN PERFORM pg_advisory_xact_lock(1); END IF")
            .await;
        let id = fixture.add("before").await.expect("added").id().get() + 1;
        observer.run("SELECT pg_advisory_lock(1)").await;
        let create = fixture.add("slow");
        observer.wait_for_locks("advisory", 1).await;
        let batch = tokio::spawn(async move { bulk.add_pets(stored_pets([id, id + 1])).await });
        observer.wait_for_locks("relation", 1).await;
        observer.run("SELECT pg_advisory_unlock(1)").await;
        assert_eq!(create.await.expect("added").id().get(), id);
        let refused = batch.await.expect("no panic");
        assert!(matches!(refused, Ok(false)), "{refused:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_that_begin_during_a_batch_get_greater_ids() {
    let fixture = Fixture::new().await;
    let bulk = bulk(fixture.database.url());
    // The batch waits for this transaction, and the create for the batch.
    let locking = SqlSession::of(&fixture.database).await;
    locking
        .run("BEGIN; LOCK TABLE pets IN ROW EXCLUSIVE MODE")
        .await;
    let batch = tokio::spawn(async move { bulk.add_pets(stored_pets([5000])).await });
    fixture.observer.wait_for_locks("relation", 1).await;
    let mut create = fixture.add("Rex");
    fixture.observer.wait_for_locks("relation", 2).await;
    assert!((&mut create).now_or_never().is_none());
    locking.unlock().await;
    assert_eq!(create.await.expect("added").id().get(), 5001);
    batch.await.expect("no panic").expect("added");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_row_or_record_is_reported_by_its_place() {
    let database = migrated().await;
    let bulk = bulk(database.url());
    for id in [0, -5] {
        let insert = "INSERT INTO pets (id, name, category_id) VALUES";
        database.sql(&format!("TRUNCATE pets; {insert} ({id}, 'secret', 1)"));
        let snapshot = bulk.snapshot().await.expect("a snapshot");
        let error = snapshot.pets(None, 10).await.expect_err("invalid");
        is_corrupt(&error, &format!(": table pets, column id, id {id}: "));
    }
    for (column, value) in [
        ("created_at", "'infinity'"),
        ("created_at", "'-infinity'"),
        ("created_at", "'1969-12-31 23:59:59.999999+00'"),
        ("created_at", "'10000-01-01 00:00:00+00'"),
        ("name", r"E'secret\u0007'"),
    ] {
        database.sql(&format!(
            "TRUNCATE pets RESTART IDENTITY;
            INSERT INTO pets (name, category_id) VALUES ('Rex', 1), ('secret', 1);
            UPDATE pets SET {column} = {value} WHERE id = 2"
        ));
        let snapshot = bulk.snapshot().await.expect("a snapshot");
        let error = snapshot.pets(None, 10).await.expect_err(value);
        let place = format!(": table pets, column {column}, id 2: ");
        is_corrupt(&error, &place);
    }
    let added = bulk.add_idempotency_records(vec![record(7)]).await;
    added.expect("added");
    for (column, value, valid) in [
        ("api_key_id", "'a b'", "'shop'"),
        ("key_digest", "'x'", "sha256('key')"),
        ("pet_digest", "'x'", "sha256('pet')"),
        ("pet_id", "0", "7"),
    ] {
        let set = |value| database.sql(&format!("UPDATE idempotency_keys SET {column} = {value}"));
        set(value);
        let snapshot = bulk.snapshot().await.expect("a snapshot");
        let error = snapshot.idempotency_records(None, 10).await;
        is_corrupt(&error.expect_err(column), &format!("{column} is not valid"));
        set(valid);
    }
}

#[track_caller]
fn is_corrupt(error: &StoreFailure, place: &str) {
    assert!(matches!(error, StoreFailure::Corrupt(_)), "{error:?}");
    let text = reason(error);
    assert!(text.contains(place) && !text.contains("secret"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_between_two_pages_ends_no_snapshot() {
    let database = migrated().await;
    let settings = few_seconds();
    let milliseconds = settings.timeout.as_millis();
    for setting in ["statement_timeout", "idle_in_transaction_session_timeout"] {
        let name = database.name();
        database.sql(&format!(
            "ALTER DATABASE {name} SET {setting} = {milliseconds}"
        ));
    }
    let observer = SqlSession::of(&database).await;
    let bulk = bulk_with(database.url(), settings);
    bulk.add_pets(stored_pets([1, 2])).await.expect("added");
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    let after = |id| Some(PetId::parse(id).expect("an id"));
    assert_eq!(snapshot.pets(after(1), 1).await.expect("a page").len(), 1);
    let before = format!("+ interval '{milliseconds} ms' < now()");
    let ours = "datname = current_database() AND application_name LIKE 'animal-store%'";
    let paused = format!("{ours} AND xact_start {before} AND state_change {before}");
    let paused = format!("pg_stat_activity WHERE {paused}");
    observer.wait_for_rows(&paused, 1).await;
    assert_eq!(snapshot.pets(after(2), 1).await.expect("a page").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_an_index_scan() {
    let database = migrated().await;
    database.sql(
        "INSERT INTO pets (name, category_id) SELECT 'Rex', 1 FROM generate_series(1, 10000);
        INSERT INTO idempotency_keys
        SELECT 'shop', decode(lpad(to_hex(n), 64, '0'), 'hex'), '', n, now() + interval '1 hour'
        FROM generate_series(1, 10000) AS n; ANALYZE",
    );
    database.sql(&trap("pets"));
    database.sql(&trap("idempotency_keys"));
    let option = "options=-c%20search_path%3Dtrap,public";
    let trapped = bulk(&with_option(database.url(), option));
    let snapshot = trapped.snapshot().await.expect("a snapshot");
    let pets = snapshot.pets(None, 10).await.expect_err("trapped");
    let snapshot = trapped.snapshot().await.expect("a snapshot");
    let records = snapshot.idempotency_records(None, 10).await;
    for (error, types, values) in [
        (pets, "bigint, bigint", "5000, 10"),
        (
            records.expect_err("trapped"),
            "text, bytea, bigint",
            "'shop', '\\x00', 10",
        ),
    ] {
        let (_, statement) = settings_and_statement(&reason(&error));
        let session = session(&database).await;
        let prepare = format!("PREPARE page ({types}) AS {statement}");
        session.run(&prepare).await;
        let plan = explain(&session, &format!("EXECUTE page ({values})")).await;
        let [limit, scan] = nodes(&plan["Plan"])[..] else {
            panic!("{plan:#}")
        };
        assert_eq!(limit["Node Type"], "Limit");
        assert_eq!(scan["Node Type"], "Index Scan");
        assert_eq!(number(scan, "Actual Rows"), 10, "{plan:#}");
    }
}
