//! Bulk access over a frozen connection, and that of a user with few permissions: a check names each missing one, and
//! grants of those are enough.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::{
    ports::{BulkStorage, StoreFailure},
    test_support::stored_pets,
};
use tokio::time::timeout;

use crate::{
    bulk::{bulk, bulk_with, record},
    explain::empty_tables,
    fixture::Fixture,
    outcomes::{PROMPT, reason},
    store::{TIMEOUT, in_both_modes, proxy_to, short_timeout},
};

/// Adds two pets, the second of which PostgreSQL refuses.
async fn is_not_written(fixture: &Fixture, expected: &str) {
    let error = bulk(fixture.database.url())
        .add_pets(stored_pets([8, 9]))
        .await
        .expect_err("refused");
    assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
    assert!(reason(&error).contains(expected), "{error:?}");
    assert_eq!(fixture.observer.count("pets WHERE id IN (8, 9)").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_a_row_that_is_refused_at_commit_or_that_a_trigger_suppresses_is_not_written()
{
    let fixture = Fixture::new().await;
    fixture
        .trigger_at_commit("IF NEW.id = 9 THEN RAISE 'at commit' USING ERRCODE = '23514'; END IF")
        .await;
    is_not_written(&fixture, "at commit (SQLSTATE 23514)").await;
    fixture
        .trigger("IF NEW.id = 9 THEN RETURN NULL; END IF")
        .await;
    is_not_written(&fixture, "a trigger suppressed a row of table pets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_over_a_frozen_connection_ends_in_time() {
    in_both_modes(&short_timeout(), async |settings| {
        let database = empty_tables().await;
        let (proxy, url) = proxy_to(database.url());
        let settings = PostgresSettings {
            connect_timeout: TIMEOUT,
            ..settings
        };
        let bulk = bulk_with(&url, settings);
        let snapshot = bulk.snapshot().await.expect("a snapshot");
        bulk.add_pets(stored_pets([9])).await.expect("added");
        proxy.freeze();
        let calls =
            async { tokio::join!(snapshot.pets(None, 10), bulk.add_pets(stored_pets([10]))) };
        let (pets, added) = timeout(PROMPT, calls)
            .await
            .expect("no call waits for another timeout");
        assert!(
            matches!(pets, Err(StoreFailure::Unavailable(_))),
            "{pets:?}"
        );
        assert!(
            matches!(added, Err(StoreFailure::Unavailable(_))),
            "{added:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_names_every_missing_permission() {
    let database = empty_tables().await;
    database.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let user = database.user();
    let bulk = bulk(&user.url);
    let role = &user.name;
    let missing = async || {
        let error = bulk
            .check_writable()
            .await
            .expect_err("a permission is missing");
        assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
        let text = reason(&error);
        assert!(text.contains(&format!(": {role}@")), "{text}");
        text.split_once("the user lacks permissions: ")
            .unwrap_or_else(|| panic!("{text}"))
            .1
            .to_owned()
    };
    let all = missing().await;
    assert_eq!(
        all.split("; ").collect::<Vec<_>>(),
        [
            format!("GRANT INSERT, SELECT, UPDATE ON idempotency_keys TO {role}"),
            format!("GRANT INSERT, SELECT, UPDATE ON pets TO {role}"),
            format!("GRANT UPDATE, USAGE ON SEQUENCE pets_id_seq TO {role}"),
            format!("GRANT CREATE ON SCHEMA public TO {role}"),
        ]
    );
    database.sql(&all);
    bulk.check_writable().await.expect("nothing is missing");
    assert_eq!(
        database.sql("SELECT pg_sequence_last_value('pets_id_seq') IS NULL, count(*) FROM pets"),
        "t|0"
    );
    bulk.mark_copy(true).await.expect("begun");
    bulk.add_pets(stored_pets([5])).await.expect("added");
    bulk.mark_copy(false).await.expect("ended");
    bulk.add_idempotency_records(vec![record("1", 5, Duration::from_hours(1))])
        .await
        .expect("added");

    database.sql(&format!(
        "REVOKE UPDATE ON SEQUENCE pets_id_seq FROM {role}"
    ));
    assert_eq!(
        missing().await,
        format!("GRANT UPDATE ON SEQUENCE pets_id_seq TO {role}")
    );
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    assert_eq!(snapshot.pets(None, 10).await.expect("pets").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_refuses_a_read_only_server_and_a_missing_table() {
    for (change, expected) in [
        (
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            "database does not allow writes",
        ),
        (
            "DROP TABLE idempotency_keys",
            "idempotency_keys is not found",
        ),
    ] {
        let database = empty_tables().await;
        database.sql(&change.replace("{}", database.name()));
        let error = bulk(database.url())
            .check_writable()
            .await
            .expect_err(change);
        assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
        assert!(reason(&error).contains(expected), "{error:?}");
    }
}
