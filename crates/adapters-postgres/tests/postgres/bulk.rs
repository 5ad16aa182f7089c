//! Bulk access: pets that keep their ids beside creates, invalid and expired rows, and snapshots. The contract suite
//! reads valid rows as they were written, and adds pets during concurrent creates.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_adapters_postgres::{PgBulkStorage, PostgresSettings};
use animal_store_app::{
    IdempotencyKey, PetDigest,
    ports::{BulkStorage, IdempotencyRecord, StoreFailure},
    test_support::{api_key_id, pet_named, stored_pets},
};
use animal_store_domain::PetId;
use futures_util::FutureExt;

use crate::{
    explain::{empty_tables, explain, nodes, session, settings_and_statement, trap},
    fixture::Fixture,
    outcomes::{reason, wait_until},
    sql_session::SqlSession,
    store::{endpoint, few_seconds, settings, with_option},
};

pub(crate) fn bulk(url: &str) -> PgBulkStorage {
    bulk_with(url, settings())
}

pub(crate) fn bulk_with(url: &str, settings: PostgresSettings) -> PgBulkStorage {
    PgBulkStorage::new(endpoint(url), settings)
}

/// The record of a create with this idempotency key.
pub(crate) fn record(text: &str, pet_id: i64, expires_in: Duration) -> IdempotencyRecord {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        + expires_in;
    IdempotencyRecord {
        key: IdempotencyKey::new(api_key_id("shop"), text),
        pet_digest: PetDigest::from_pet(&pet_named("Rex")),
        pet_id: PetId::parse(pet_id).expect("an id"),
        expires_at: UNIX_EPOCH
            + Duration::from_millis(u64::try_from(now.as_millis()).expect("a time")),
    }
}

/// The create has taken its id from the sequence, and its row is not inserted yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_waits_for_the_creates_in_flight() {
    Fixture::in_both_modes(async |fixture| {
        let bulk = Arc::new(bulk(fixture.database.url()));
        fixture
            .trigger("IF NEW.name = 'slow' THEN PERFORM pg_advisory_xact_lock(1); END IF")
            .await;
        fixture.observer.run("SELECT pg_advisory_lock(1)").await;
        let create = fixture.begin("slow");
        fixture.observer.wait_for_locks("advisory", 1).await;
        let batch = tokio::spawn(async move { bulk.add_pets(stored_pets([2, 3])).await });
        fixture.observer.wait_for_locks("relation", 1).await;
        fixture.observer.run("SELECT pg_advisory_unlock(1)").await;
        assert_eq!(create.await.expect("added").id().get(), 2);
        let refused = batch.await.expect("no panic");
        assert!(matches!(refused, Ok(false)), "{refused:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_that_begin_during_a_batch_get_greater_ids() {
    let fixture = Fixture::new().await;
    let bulk = Arc::new(bulk(fixture.database.url()));
    // The batch waits for this transaction, and the create for the batch.
    let locking = SqlSession::of(&fixture.database).await;
    locking
        .run("BEGIN; LOCK TABLE pets IN ROW EXCLUSIVE MODE")
        .await;
    let batch = tokio::spawn(async move { bulk.add_pets(stored_pets([50])).await });
    fixture.observer.wait_for_locks("relation", 1).await;
    let mut create = fixture.begin("Rex");
    fixture.observer.wait_for_locks("relation", 2).await;
    assert!((&mut create).now_or_never().is_none());
    locking.unlock().await;
    assert_eq!(create.await.expect("added").id().get(), 51);
    batch.await.expect("no panic").expect("added");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_row_is_reported_by_its_place() {
    let database = empty_tables().await;
    let bulk = bulk(database.url());
    for (column, row) in [
        ("created_at", "('secret', 1, 'infinity')"),
        ("created_at", "('secret', 1, '-infinity')"),
        (
            "created_at",
            "('secret', 1, '1969-12-31 23:59:59.999999+00')",
        ),
        ("created_at", "('secret', 1, '10000-01-01 00:00:00+00')"),
        ("name", r"(E'secret\u0007', 1, now())"),
    ] {
        database.sql("TRUNCATE pets RESTART IDENTITY; INSERT INTO pets (name, category_id) VALUES ('Rex', 1)");
        database.sql(&format!(
            "INSERT INTO pets (name, category_id, created_at) VALUES {row}"
        ));
        let error = bulk
            .snapshot()
            .await
            .expect("a snapshot")
            .pets(None, 10)
            .await
            .expect_err(row);
        assert!(matches!(error, StoreFailure::Corrupt(_)), "{error:?}");
        let text = reason(&error);
        assert!(
            text.contains(&format!(": table pets, column {column}, id 2: ")),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_record_is_reported_by_its_place() {
    let database = empty_tables().await;
    let bulk = bulk(database.url());
    let session = SqlSession::of(&database).await;
    for change in [
        "api_key_id = 'a b'",
        "key_digest = 'x'",
        "pet_digest = 'x'",
        "pet_id = 0",
    ] {
        bulk.add_idempotency_records(vec![record("1", 7, Duration::from_hours(1))])
            .await
            .expect("added");
        session
            .run(&format!("UPDATE idempotency_keys SET {change}"))
            .await;
        let read = bulk
            .snapshot()
            .await
            .expect("a snapshot")
            .idempotency_records(None, 10)
            .await;
        let error = read.expect_err(change);
        let column = change.split(' ').next().expect("a column");
        assert!(matches!(error, StoreFailure::Corrupt(_)), "{error:?}");
        assert!(
            reason(&error).contains(&format!("{column} is not valid")),
            "{error:?}"
        );
        session.run("DELETE FROM idempotency_keys").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_between_two_pages_ends_no_snapshot() {
    let database = empty_tables().await;
    let settings = few_seconds();
    let timeout = settings.timeout;
    for setting in ["statement_timeout", "idle_in_transaction_session_timeout"] {
        database.sql(&format!(
            "ALTER DATABASE {} SET {setting} = {}",
            database.name(),
            timeout.as_millis()
        ));
    }
    let observer = SqlSession::of(&database).await;
    let bulk = bulk_with(database.url(), settings);
    bulk.add_pets(stored_pets([1, 2])).await.expect("added");
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    let after = |id| Some(PetId::parse(id).expect("an id"));
    assert_eq!(snapshot.pets(after(1), 1).await.expect("a page").len(), 1);
    let pause = format!("interval '{} ms'", timeout.as_millis());
    let paused = format!(
        "pg_stat_activity WHERE xact_start + {pause} < now() AND state_change + {pause} < now()"
    );
    let ours = "datname = current_database() AND application_name LIKE 'animal-store%'";
    wait_until("the pause is longer than the timeouts", async || {
        observer.count(&format!("{paused} AND {ours}")).await == 1
    })
    .await;
    assert_eq!(snapshot.pets(after(2), 1).await.expect("a page").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_an_index_scan() {
    let database = empty_tables().await;
    database.sql(
        "INSERT INTO pets (name, category_id) SELECT 'Rex', 1 FROM generate_series(1, 10000);
        INSERT INTO idempotency_keys
        SELECT 'shop', decode(lpad(to_hex(n), 64, '0'), 'hex'), '', n, now() + interval '1 hour'
        FROM generate_series(1, 10000) AS n; ANALYZE",
    );
    for (table, parameters, values) in [
        ("pets", "bigint, bigint", "5000, 10"),
        (
            "idempotency_keys",
            "text, bytea, bigint",
            "'shop', '\\x00', 10",
        ),
    ] {
        database.sql(&trap(table));
        let trapped = bulk_with(
            &with_option(database.url(), "options=-c%20search_path%3Dtrap,public"),
            settings(),
        );
        let snapshot = trapped.snapshot().await.expect("a snapshot");
        let error = match table {
            "pets" => snapshot.pets(None, 10).await.expect_err("trapped"),
            _ => snapshot
                .idempotency_records(None, 10)
                .await
                .expect_err("trapped"),
        };
        let (_, statement) = settings_and_statement(&reason(&error));
        let client = session(&database).await;
        client
            .batch_execute(&format!("PREPARE page ({parameters}) AS {statement}"))
            .await
            .expect("prepared");
        let plan = explain(&client, &format!("EXECUTE page ({values})")).await;
        let found: Vec<_> = nodes(&plan["Plan"])
            .iter()
            .filter_map(|node| node["Node Type"].as_str())
            .collect();
        assert_eq!(found, ["Limit", "Index Scan"], "{plan:#}");
        assert_eq!(
            plan["Plan"]["Plans"][0]["Actual Rows"].as_f64(),
            Some(10.0),
            "{plan:#}"
        );
    }
}
