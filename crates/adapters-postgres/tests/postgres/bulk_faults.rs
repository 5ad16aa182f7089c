//! Bulk access over a frozen connection, and that of a user with few permissions: a check names each missing one, and
//! grants of those are enough.

use crate::{
    bulk::{bulk, bulk_with, record},
    prelude::*,
};

/// The reason of an error that says that the storage is unavailable.
#[track_caller]
fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreFailure>) -> String {
    let error = result.expect_err("it fails");
    assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
    reason(&error)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_a_row_that_is_refused_or_that_a_trigger_suppresses_is_not_written() {
    let fixture = Fixture::new().await;
    let is_not_written = async |expected: &str| {
        let pets = stored_pets([8000, 9000]);
        let added = bulk(fixture.database.url()).add_pets(pets).await;
        let text = unavailable(added);
        assert!(text.contains(expected), "{text}");
        let written = fixture
            .observer
            .count("pets WHERE id IN (8000, 9000)")
            .await;
        assert_eq!(written, 0);
    };
    let refuse = "IF NEW.id = 9000 THEN RAISE 'no' USING ERRCODE = '23514'; END IF";
    fixture.trigger(refuse).await;
    is_not_written("no (SQLSTATE 23514)").await;
    fixture.trigger_at_commit(refuse).await;
    is_not_written("no (SQLSTATE 23514)").await;
    fixture
        .trigger("IF NEW.id = 9000 THEN RETURN NULL; END IF")
        .await;
    is_not_written("a trigger suppressed a row of table pets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_over_a_frozen_connection_ends_in_time() {
    in_both_modes(&few_seconds(), async |settings| {
        let database = migrated().await;
        let (proxy, url) = proxy_to(database.url());
        let settings = PostgresSettings {
            connect_timeout: settings.timeout,
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
        unavailable(pets);
        unavailable(added);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_names_every_missing_permission() {
    let database = migrated().await;
    database.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let user = database.user();
    let bulk = bulk(&user.url);
    let role = &user.name;
    let missing = async || {
        let text = unavailable(bulk.check_writable().await);
        assert!(text.contains(&format!(": {role}@")), "{text}");
        let missing = text.split_once("the user lacks permissions: ");
        missing.expect(&text).1.to_owned()
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
    let untouched = "SELECT pg_sequence_last_value('pets_id_seq') IS NULL, count(*) FROM pets";
    assert_eq!(database.sql(untouched), "t|0");
    bulk.mark_copy(true).await.expect("begun");
    bulk.add_pets(stored_pets([5])).await.expect("added");
    bulk.mark_copy(false).await.expect("ended");
    let added = bulk.add_idempotency_records(vec![record(5)]).await;
    added.expect("added");

    let update = "UPDATE ON SEQUENCE pets_id_seq";
    database.sql(&format!("REVOKE {update} FROM {role}"));
    assert_eq!(missing().await, format!("GRANT {update} TO {role}"));
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    assert_eq!(snapshot.pets(None, 10).await.expect("pets").len(), 1);
    let last_id = snapshot.last_id().await.expect("USAGE suffices");
    assert_eq!(last_id, PetId::parse(5).ok());
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
        let database = migrated().await;
        database.sql(&change.replace("{}", database.name()));
        let text = unavailable(bulk(database.url()).check_writable().await);
        assert!(text.contains(expected), "{text}");
    }
}
