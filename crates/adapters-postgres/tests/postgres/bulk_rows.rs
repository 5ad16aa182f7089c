//! Rows in bulk that are not valid, or that have expired. The contract suite reads valid ones as they were written.

use std::time::Duration;

use animal_store_app::ports::{BulkStorage, StoreFailure};

use crate::{
    bulk_fixture::{bulk, record},
    explain::empty_tables,
    outcomes::reason,
    sql_session::SqlSession,
};

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
