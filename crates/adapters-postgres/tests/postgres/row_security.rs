//! Row level security: the storage is unavailable, and no list is empty because of a policy.

use animal_store_adapters_postgres::api_key_store;
use animal_store_app::ports::{ApiKeyStore, BulkStorage};
use animal_store_test_servers::PgDatabase;

use crate::{
    bulk::bulk_with,
    outcomes::{
        Success, Unavailable, list_find_add, not_ready, wait_for_outcome, wait_until_ready,
    },
    store::{Store, both_modes, check, endpoint, migrations, settings},
};

const POLICY: &str = "query would be affected by row-level security policy";

/// A policy of each kind: none, which hides all rows, and one that shows them all.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_policy_that_applies_to_the_user_nothing_is_served() {
    for settings in both_modes(&check()) {
        let database = PgDatabase::new();
        migrations(database.url()).run().await.expect("migrated");
        let user = database.user();
        database.sql(&format!(
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO {0};
            GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {0}",
            user.name
        ));
        let store = Store::at(&user.url, settings.clone()).await;
        wait_for_outcome(&store.repository, Success).await;
        wait_until_ready(&store.storage).await;
        database.sql("CREATE POLICY everything ON pets USING (true)");
        for policy in ["USING (true)", "USING (false)"] {
            database.sql(&format!(
                "ALTER POLICY everything ON pets {policy};
                ALTER TABLE pets ENABLE ROW LEVEL SECURITY"
            ));
            assert_eq!(list_find_add(&store.repository).await, [Unavailable; 3]);
            let reason = not_ready(&store.storage).await.expect("not ready");
            assert!(reason.contains(POLICY), "{reason}");
            let bulk = bulk_with(&user.url, settings.clone());
            let snapshot = bulk.snapshot().await.expect("a snapshot");
            snapshot.pets(None, 10).await.expect_err("refused");
            database.sql("ALTER TABLE pets DISABLE ROW LEVEL SECURITY");
            wait_for_outcome(&store.repository, Success).await;
        }
        database.sql("ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY");
        let keys = api_key_store(endpoint(&user.url), settings);
        keys.list().await.expect_err("refused");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_does_not_apply_to_the_user_changes_nothing() {
    let database = PgDatabase::new();
    let store = Store::at(database.url(), settings()).await;
    wait_for_outcome(&store.repository, Success).await;
    database.sql("ALTER TABLE pets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY");
    assert_eq!(list_find_add(&store.repository).await, [Success; 3]);
    wait_until_ready(&store.storage).await;
}
