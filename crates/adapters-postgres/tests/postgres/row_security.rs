//! Row level security: the storage is unavailable, and no list is empty because of a policy.

use crate::{bulk::bulk_with, prelude::*};

const POLICY: &str = "query would be affected by row-level security policy";

/// A policy of each kind: none, which hides all rows, and one that shows them all.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_policy_that_applies_to_the_user_nothing_is_served() {
    for settings in both_modes(&check()) {
        let database = migrated().await;
        let user = user_with(&database, &ALL);
        let store = Store::at(&user.url, settings.clone()).await;
        store.wait_until_it_works().await;
        database.sql("CREATE POLICY everything ON pets USING (true)");
        for policy in ["USING (true)", "USING (false)"] {
            database.sql(&format!("ALTER POLICY everything ON pets {policy}"));
            database.sql("ALTER TABLE pets ENABLE ROW LEVEL SECURITY");
            assert_eq!(store.list_find_add().await, [Unavailable; 3]);
            let reason = store.not_ready().await.expect("not ready");
            assert!(reason.contains(POLICY), "{reason}");
            let bulk = bulk_with(&user.url, settings.clone());
            let snapshot = bulk.snapshot().await.expect("a snapshot");
            snapshot.pets(None, 10).await.expect_err("refused");
            database.sql("ALTER TABLE pets DISABLE ROW LEVEL SECURITY");
            store.wait_for(Success).await;
        }
        database.sql("ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY");
        let keys = api_key_store(endpoint(&user.url), settings);
        keys.list().await.expect_err("refused");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_does_not_apply_to_the_user_changes_nothing() {
    let fixture = Fixture::new().await;
    let enable = "ALTER TABLE pets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY";
    fixture.observer.run(enable).await;
    assert_eq!(fixture.list_find_add().await, [Success; 3]);
    fixture.wait_until_ready().await;
}
