//! Batches and snapshots whose connection fails.

use std::time::Instant;

use animal_store_adapters_postgres::PgBulkStorage;
use animal_store_app::ports::{BulkStorage, BulkStorageError, PetBatch};
use animal_store_test_servers::{FaultProxy, PgDatabase};

use crate::{
    bulk_fixture::{SOURCE, batch, bulk, bulk_with, progress, step, with_id, without_id},
    explain::empty_tables,
    fixture::Fixture,
    outcomes::{eventually, reason},
    sql_session::SqlSession,
    store::{MARGIN, TIMEOUT, in_both_modes, proxy_to, settings, short_timeout},
};

async fn proxied() -> (PgDatabase, FaultProxy, String) {
    let database = empty_tables().await;
    let (proxy, url) = proxy_to(database.url());
    (database, proxy, url)
}

fn import_batch(from: Option<u64>, to: u64) -> PetBatch {
    PetBatch { step: Some(step(from, to)), ..batch(vec![without_id("lost")]) }
}

/// Adds a batch, and cuts the connection as soon as the proxy holds data.
async fn add_and_cut(bulk: &PgBulkStorage, proxy: &FaultProxy, batch: PetBatch) -> BulkStorageError {
    let meanwhile = async {
        eventually("something is held", async || proxy.held() > 0).await;
        proxy.cut();
    };
    tokio::join!(bulk.add_pets(batch), meanwhile).0.expect_err("it was cut")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_cut_before_its_commit_was_sent_was_not_written() {
    for text in ["lost", "INSERT INTO imports", "LOCK TABLE"] {
        let (database, mut proxy, url) = proxied().await;
        let bulk = bulk(&url);
        let both = PetBatch { step: Some(step(None, 1)), ..batch(vec![with_id(9, "lost")]) };
        proxy.hold(text);
        let error = add_and_cut(&bulk, &proxy, both.clone()).await;
        assert!(matches!(error, BulkStorageError::Unavailable(_)), "{text}: {error:?}");
        proxy.heal();
        assert_eq!(database.sql("SELECT count(*) FROM pets"), "0");
        bulk.add_pets(both).await.expect("the same storage connects again");
        assert_eq!(bulk.import_progress(SOURCE).await.expect("a progress"), Some(progress(1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_commit_has_no_response_has_an_unknown_outcome() {
    // The commit, or the response to it.
    for (text, expected) in [("COMMIT\0", None), ("COMMIT\0Z", Some(progress(1)))] {
        let (database, mut proxy, url) = proxied().await;
        let observer = SqlSession::of(&database).await;
        proxy.hold(text);
        let bulk = bulk(&url);
        let error = add_and_cut(&bulk, &proxy, import_batch(None, 1)).await;
        assert!(matches!(error, BulkStorageError::OutcomeUnknown(_)), "{error:?}");
        proxy.heal();
        observer.wait_for_backends(0).await;
        // The progress says whether the batch was written.
        assert_eq!(bulk.import_progress(SOURCE).await.expect("the progress"), expected);
        assert_eq!(observer.count("pets").await, usize::from(expected.is_some()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_refused_at_commit_was_not_written() {
    let fixture = Fixture::new().await;
    let bulk = bulk(fixture.database.url());
    fixture.trigger_at_commit("IF NEW.name = 'lost' THEN RAISE 'at commit' USING ERRCODE = '23514'; END IF").await;
    let error = bulk.add_pets(import_batch(None, 1)).await.expect_err("refused");
    assert!(matches!(error, BulkStorageError::Unavailable(_)), "{error:?}");
    assert!(reason(&error).contains("at commit (SQLSTATE 23514)"), "{error:?}");
    assert_eq!((fixture.observer.named("lost").await, fixture.observer.count("imports").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_a_row_that_a_trigger_suppresses_is_not_written() {
    let fixture = Fixture::new().await;
    let bulk = bulk(fixture.database.url());
    fixture.trigger("IF NEW.name = 'bad' THEN RETURN NULL; END IF").await;
    for bad in [with_id(20, "bad"), without_id("bad")] {
        let error = bulk.add_pets(batch(vec![without_id("good"), bad])).await.expect_err("refused");
        assert!(matches!(error, BulkStorageError::Unavailable(_)), "{error:?}");
        assert!(reason(&error).contains("a trigger suppressed a row of table pets"), "{error:?}");
        assert_eq!(fixture.observer.named("good").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_over_a_frozen_connection_ends_in_time() {
    in_both_modes(&short_timeout(), async |settings| {
        let (_database, proxy, url) = proxied().await;
        let bulk = bulk_with(&url, settings);
        let mut snapshot = bulk.snapshot().await.expect("a snapshot");
        bulk.add_pets(import_batch(None, 1)).await.expect("added");
        proxy.freeze();
        let start = Instant::now();
        let (pets, added) = tokio::join!(snapshot.pets(None, 10), bulk.add_pets(import_batch(Some(1), 2)));
        assert!(matches!(pets, Err(BulkStorageError::Unavailable(_))), "{pets:?}");
        assert!(matches!(added, Err(BulkStorageError::Unavailable(_))), "{added:?}");
        assert!(start.elapsed() < TIMEOUT + MARGIN, "{:?}", start.elapsed());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_every_call_fails() {
    let (_database, mut proxy, url) = proxied().await;
    let bulk = bulk_with(&url, settings());
    proxy.refuse();
    let error = bulk.snapshot().await.err().expect("no connection");
    assert!(matches!(error, BulkStorageError::Unavailable(_)), "{error:?}");
    let error = bulk.import_progress(SOURCE).await.expect_err("no connection");
    assert!(matches!(error, BulkStorageError::Unavailable(_)), "{error:?}");
}
