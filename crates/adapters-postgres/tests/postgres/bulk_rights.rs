//! Bulk access of a user with few privileges: the error names a missing one, and the documented ones are enough.

use std::{fs, path::Path, time::Duration};

use animal_store_app::ports::{BulkStorage, BulkStorageError, PetBatch};

use crate::{
    bulk_fixture::{SOURCE, batch, bulk, record, step, with_id, without_id},
    explain::empty_tables,
    outcomes::reason,
};

/// The statements of docs/operations.md that begin with GRANT, with this role.
fn documented_grants(role: &str) -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let docs = fs::read_to_string(docs).expect("the documentation");
    let grants = docs.lines().map(str::trim).filter(|line| line.starts_with("GRANT ") && line.contains(" TO store;"));
    grants.map(|grant| grant.replace(" TO store;", &format!(" TO {role};"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_names_the_missing_privilege() {
    let database = empty_tables().await;
    let role = format!("store_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN"));
    let bulk = bulk(&database.url().replace("postgres@", &format!("{role}@")));
    let hour = Duration::from_hours(1);
    let refused = |error: BulkStorageError, needed: &str| {
        let text = reason(&error);
        assert!(matches!(error, BulkStorageError::Unavailable(_)), "{error:?}");
        let (denied, found) = text.split_once("; the user needs ").unwrap_or_else(|| panic!("{text}"));
        assert!(denied.contains(&format!("{role}@")) && denied.contains("permission denied for "), "{text}");
        assert_eq!(found, needed);
    };
    let added = || bulk.add_pets(batch(vec![without_id("a")]));
    let added_with_id = || bulk.add_pets(batch(vec![with_id(5, "a")]));
    let imported = || bulk.add_pets(PetBatch { step: Some(step(None, 1)), ..batch(Vec::new()) });
    let records = || bulk.add_idempotency_records(vec![record("shop", "1", 1, hour)]);
    let mut snapshot = bulk.snapshot().await.expect("a snapshot needs no privilege");
    refused(snapshot.pets(None, 1).await.expect_err("refused"), "SELECT on pets");
    let mut snapshot = bulk.snapshot().await.expect("a snapshot");
    refused(snapshot.idempotency_records(None, 1).await.expect_err("refused"), "SELECT on idempotency_keys");
    let needed_to_add = "SELECT and INSERT on pets, and USAGE on the sequence pets_id_seq";
    refused(added().await.expect_err("refused"), needed_to_add);
    let needed_for_ids = "UPDATE on pets, and USAGE and UPDATE on the sequence pets_id_seq";
    refused(added_with_id().await.expect_err("refused"), needed_for_ids);
    let needed_for_progress = "SELECT, INSERT and UPDATE on imports";
    refused(imported().await.expect_err("refused"), needed_for_progress);
    refused(bulk.import_progress(SOURCE).await.expect_err("refused"), needed_for_progress);
    refused(bulk.finish_import(SOURCE).await.expect_err("refused"), needed_for_progress);
    refused(records().await.expect_err("refused"), "SELECT, INSERT and UPDATE on idempotency_keys");

    let mut grants = documented_grants(&role);
    let for_ids: Vec<_> = ["UPDATE ON pets TO", "UPDATE ON SEQUENCE pets_id_seq TO"]
        .map(|privilege| {
            let position = grants.iter().position(|grant| grant.starts_with(&format!("GRANT {privilege}")));
            grants.remove(position.unwrap_or_else(|| panic!("{privilege} is documented")))
        })
        .into();
    assert_eq!(grants.len(), 5, "{grants:?}");
    database.sql(&grants.join(" "));
    added().await.expect("added");
    imported().await.expect("a step");
    bulk.finish_import(SOURCE).await.expect("finished");
    records().await.expect("added");
    for grant in for_ids {
        refused(added_with_id().await.expect_err("refused"), needed_for_ids);
        database.sql(&grant);
    }
    added_with_id().await.expect("added");
    assert_eq!(bulk.snapshot().await.expect("a snapshot").pets(None, 10).await.expect("pets").len(), 2);
    drop(snapshot);
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
