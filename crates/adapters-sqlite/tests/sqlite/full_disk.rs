//! A disk that creates, a backup or a copy fill: an API key can be revoked.

use std::fmt::Debug;

use crate::{child, prelude::*};

#[track_caller]
fn assert_nearly_full(error: &dyn Debug) {
    let error = format!("{error:?}");
    let is_full = error.contains("nearly full") || error.contains("Reserve");
    assert!(is_full, "{error}");
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
    let ids = ["creates", "backup", "copy", "reader", "stopped"];
    keys.add(&ids).await;
    let store = Store::on(path);
    fill(&store).await;
    keys.revoke("creates").await;
    store.readiness.check().await.expect("ready");

    let backup = NewBackup::create(&path.with_file_name("backup.db")).expect("begun");
    let written = backup.vacuum_from(store.file.clone()).await;
    assert_nearly_full(&written.expect_err("refused"));
    drop(backup);
    keys.revoke("backup").await;

    let bulk = SqliteBulkStorage::new(&store.file);
    let added = bulk.add_pets(stored_pets([1 << 40])).await;
    assert_nearly_full(&added.expect_err("refused"));
    let added = bulk.add_idempotency_records(Vec::new()).await;
    assert_nearly_full(&added.expect_err("refused"));
    keys.revoke("copy").await;

    let snapshot = bulk.snapshot().await.expect("a reader");
    fill(&store).await;
    keys.revoke("reader").await;
    drop(snapshot);
    drop((bulk, keys));
    store.close().await;
    // A start needs no reserve.
    let store = Store::on(path);
    fill(&store).await;
    store.close().await;
    let keys = SqliteApiKeyStore::new(open(path));
    keys.revoke("stopped").await;
    assert_eq!(keys.list().await.expect("listed"), []);
}

#[test]
fn on_a_full_disk_every_key_can_be_revoked() {
    let (_folder, path) = new_path();
    let mounts = "mount -t tmpfs -o size=24m none \"$(dirname \"$0\")\"";
    child::run_with_mounts(mounts, "revoke on a full disk", &path);
}
