//! Batches and snapshots whose connection fails.

use std::time::Instant;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::{
    ports::{BulkStorage, StoreFailure},
    test_support::stored_pets,
};
use animal_store_test_servers::{FaultProxy, PgDatabase};

use crate::{
    bulk_fixture::{bulk, bulk_with},
    explain::empty_tables,
    fixture::Fixture,
    outcomes::reason,
    sql_session::SqlSession,
    store::{MARGIN, TIMEOUT, cut_when_held, in_both_modes, proxy_to, short_timeout},
};

async fn proxied() -> (PgDatabase, FaultProxy, String) {
    let database = empty_tables().await;
    let (proxy, url) = proxy_to(database.url());
    (database, proxy, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_cut_before_its_commit_was_sent_was_not_written() {
    for text in ["LOCK TABLE", "INSERT INTO pets"] {
        let (database, mut proxy, url) = proxied().await;
        let bulk = bulk(&url);
        proxy.hold(text);
        let error = cut_when_held(&proxy, bulk.add_pets(stored_pets([9]))).await.expect_err("it was cut");
        assert!(matches!(error, StoreFailure::Unavailable(_)), "{text}: {error:?}");
        proxy.heal();
        assert_eq!(database.sql("SELECT count(*) FROM pets"), "0");
        bulk.add_pets(stored_pets([9])).await.expect("the same storage connects again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_commit_has_no_response_has_an_unknown_outcome() {
    // The commit, or the response to it.
    for (text, stored) in [("COMMIT\0", 0), ("COMMIT\0Z", 1)] {
        let (database, mut proxy, url) = proxied().await;
        let observer = SqlSession::of(&database).await;
        let bulk = bulk(&url);
        proxy.hold(text);
        let error = cut_when_held(&proxy, bulk.add_pets(stored_pets([9]))).await.expect_err("it was cut");
        assert!(matches!(error, StoreFailure::OutcomeUnknown(_)), "{error:?}");
        proxy.heal();
        observer.wait_for_backends(0).await;
        assert_eq!(observer.count("pets").await, stored);
    }
}

/// Adds two pets, the second of which PostgreSQL refuses.
async fn is_not_written(fixture: &Fixture, expected: &str) {
    let error = bulk(fixture.database.url()).add_pets(stored_pets([8, 9])).await.expect_err("refused");
    assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
    assert!(reason(&error).contains(expected), "{error:?}");
    assert_eq!(fixture.observer.count("pets WHERE id IN (8, 9)").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_a_row_that_is_refused_at_commit_or_that_a_trigger_suppresses_is_not_written() {
    let fixture = Fixture::new().await;
    fixture.trigger_at_commit("IF NEW.id = 9 THEN RAISE 'at commit' USING ERRCODE = '23514'; END IF").await;
    is_not_written(&fixture, "at commit (SQLSTATE 23514)").await;
    fixture.trigger("IF NEW.id = 9 THEN RETURN NULL; END IF").await;
    is_not_written(&fixture, "a trigger suppressed a row of table pets").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_over_a_frozen_connection_ends_in_time() {
    in_both_modes(&short_timeout(), async |settings| {
        let (_database, proxy, url) = proxied().await;
        let settings = PostgresSettings { connect_timeout: TIMEOUT, ..settings };
        let bulk = bulk_with(&url, settings);
        let snapshot = bulk.snapshot().await.expect("a snapshot");
        bulk.add_pets(stored_pets([9])).await.expect("added");
        proxy.freeze();
        let start = Instant::now();
        let (pets, added) = tokio::join!(snapshot.pets(None, 10), bulk.add_pets(stored_pets([10])));
        assert!(matches!(pets, Err(StoreFailure::Unavailable(_))), "{pets:?}");
        assert!(matches!(added, Err(StoreFailure::Unavailable(_))), "{added:?}");
        assert!(start.elapsed() < TIMEOUT + MARGIN, "{:?}", start.elapsed());
    })
    .await;
}
