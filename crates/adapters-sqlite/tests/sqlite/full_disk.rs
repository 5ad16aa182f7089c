//! A disk that creates, a backup or a copy fill: an API key can be revoked.

use std::{fmt::Debug, path::Path};

use animal_store_adapters_sqlite::{NewBackup, SqliteApiKeyStore, SqliteBulkStorage};
use animal_store_app::{
    ports::{ApiKeyStore, BulkStorage},
    test_support::{
        join_tasks,
        key_changes::{add, revoke},
        stored_pets,
    },
};
use tempfile::TempDir;

use crate::{
    child,
    store::{Store, open, settings},
};

#[track_caller]
fn assert_nearly_full(error: &dyn Debug) {
    let error = format!("{error:?}");
    assert!(
        error.contains("nearly full") || error.contains("Reserve"),
        "{error}"
    );
}

/// Adds pets in batches until one is refused.
async fn fill(store: &Store) {
    loop {
        let adds = (0..500).map(|number| store.try_add(&format!("{number} {}", "x".repeat(240))));
        for added in join_tasks(adds).await {
            if let Err(error) = added {
                assert_nearly_full(&error);
                return;
            }
        }
    }
}

/// A disk whose reserve is 16 MiB. Runs in another process.
pub(crate) async fn revoke_keys_on_a_full_disk(path: &Path) {
    let keys = SqliteApiKeyStore::new(open(path));
    for id in ["creates", "backup", "copy", "reader", "stopped"] {
        keys.change(add(id, id, None), "test").await.expect("added");
    }
    let store = Store::on(path, settings());
    fill(&store).await;
    keys.change(revoke("creates"), "test")
        .await
        .expect("revoked");
    store.readiness.check().await.expect("ready");

    let backup = NewBackup::create(&path.with_file_name("backup.db")).expect("begun");
    let error = backup
        .vacuum_from(store.file.clone())
        .await
        .expect_err("refused");
    assert_nearly_full(&error);
    drop(backup);
    keys.change(revoke("backup"), "test")
        .await
        .expect("revoked");

    let bulk = SqliteBulkStorage::new(&store.file);
    let error = bulk
        .add_pets(stored_pets([1 << 40]))
        .await
        .expect_err("refused");
    assert_nearly_full(&error);
    let error = bulk
        .add_idempotency_records(Vec::new())
        .await
        .expect_err("refused");
    assert_nearly_full(&error);
    keys.change(revoke("copy"), "test").await.expect("revoked");

    let snapshot = bulk.snapshot().await.expect("a reader");
    fill(&store).await;
    keys.change(revoke("reader"), "test")
        .await
        .expect("revoked");
    drop(snapshot);

    drop((bulk, keys));
    store.close().await;
    // A start needs no reserve.
    let store = Store::on(path, settings());
    fill(&store).await;
    store.close().await;
    let keys = SqliteApiKeyStore::new(open(path));
    keys.change(revoke("stopped"), "test")
        .await
        .expect("revoked");
    assert_eq!(keys.list().await.expect("listed"), []);
}

#[test]
fn on_a_full_disk_every_key_can_be_revoked() {
    let folder = TempDir::new().expect("a folder");
    let mounts = "mount -t tmpfs -o size=24m none \"$(dirname \"$0\")\"";
    child::run_with_mounts(
        mounts,
        "revoke on a full disk",
        &folder.path().join("pets.db"),
    );
}
