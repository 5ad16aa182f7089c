//! Bulk access of a user with few permissions: a check names each missing one, and grants of those are enough.

use std::time::Duration;

use animal_store_app::{
    ports::{BulkStorage, StoreFailure},
    test_support::stored_pets,
};

use crate::{
    bulk_fixture::{bulk, record},
    explain::empty_tables,
    outcomes::reason,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_names_every_missing_permission() {
    let database = empty_tables().await;
    let role = format!("store_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN"));
    let bulk = bulk(&database.url().replace("postgres@", &format!("{role}@")));
    let missing = async || {
        let error = bulk.check_writable().await.expect_err("a permission is missing");
        assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
        let text = reason(&error);
        assert!(text.contains(&format!(": {role}@")), "{text}");
        text.split_once("the user lacks permissions: ").unwrap_or_else(|| panic!("{text}")).1.to_owned()
    };
    let all = missing().await;
    assert_eq!(
        all.split("; ").collect::<Vec<_>>(),
        [
            format!("GRANT INSERT, SELECT, UPDATE ON idempotency_keys TO {role}"),
            format!("GRANT INSERT, SELECT, UPDATE ON pets TO {role}"),
            format!("GRANT UPDATE, USAGE ON SEQUENCE pets_id_seq TO {role}"),
        ]
    );
    database.sql(&all);
    bulk.check_writable().await.expect("nothing is missing");
    assert_eq!(database.sql("SELECT pg_sequence_last_value('pets_id_seq') IS NULL, count(*) FROM pets"), "t|0");
    bulk.add_pets(stored_pets([5])).await.expect("added");
    bulk.add_idempotency_records(vec![record("1", 5, Duration::from_hours(1))]).await.expect("added");

    database.sql(&format!("REVOKE UPDATE ON SEQUENCE pets_id_seq FROM {role}"));
    assert_eq!(missing().await, format!("GRANT UPDATE ON SEQUENCE pets_id_seq TO {role}"));
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    assert_eq!(snapshot.pets(None, 10).await.expect("pets").len(), 1);
    drop(snapshot);
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_refuses_a_read_only_server_and_a_missing_table() {
    for (change, expected) in [
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "transactions are read-only"),
        ("DROP TABLE idempotency_keys", "idempotency_keys is not found"),
    ] {
        let database = empty_tables().await;
        database.sql(&change.replace("{}", database.name()));
        let error = bulk(database.url()).check_writable().await.expect_err(change);
        assert!(matches!(error, StoreFailure::Unavailable(_)), "{error:?}");
        assert!(reason(&error).contains(expected), "{error:?}");
    }
}
