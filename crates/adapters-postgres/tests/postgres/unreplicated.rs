//! Commits whose wait for a standby is cancelled: PostgreSQL warns, and commits.

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::PostgresServer;

use crate::{
    fixture::Fixture,
    outcomes::{Success, Unknown, add, add_outcome, wait_until},
    store::{Store, in_both_modes, settings},
};

const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// A store that adds a pet, on a server that then waits for a standby that does not exist.
async fn waiting_for_a_standby(settings: PostgresSettings) -> (Store, PostgresServer) {
    let server = PostgresServer::start();
    let store = Store::at(&server.url("postgres"), settings).await;
    assert_eq!(
        add_outcome(&add(&store.repository, "before").await),
        Success
    );
    require_missing_standby(&server).await;
    (store, server)
}

/// Makes every later commit wait for a standby that does not exist.
pub(crate) async fn require_missing_standby(server: &PostgresServer) {
    server.sql(
        "postgres",
        "ALTER SYSTEM SET synchronous_standby_names = 'missing'",
    );
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until("the setting", async || {
        server.sql("postgres", "SHOW synchronous_standby_names") == "missing"
    })
    .await;
    // The process that makes checkpoints tells the others of the setting before it makes one.
    server.sql("postgres", "CHECKPOINT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_wait_an_administrator_cancels_has_an_unknown_outcome() {
    in_both_modes(&settings(), async |settings| {
        let (store, server) = waiting_for_a_standby(settings).await;
        let repository = store.repository.clone();
        let added = tokio::spawn(async move { add_outcome(&add(&repository, "waiting").await) });
        let count = format!("SELECT count(*) {WAITING}");
        wait_until("the commit waits", async || {
            server.sql("postgres", &count) == "1"
        })
        .await;
        server.sql(
            "postgres",
            &format!("SELECT pg_cancel_backend(pid) {WAITING}"),
        );
        assert_eq!(added.await.expect("no panic"), Unknown);
        assert_eq!(
            server.sql("postgres", "SELECT count(*) FROM pets"),
            "2",
            "it is committed"
        );
    })
    .await;
}

/// The warning of a trigger is none of the commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_warns_changes_no_outcome() {
    Fixture::in_both_modes(async |fixture| {
        fixture.trigger_at_commit("RAISE WARNING 'look'").await;
        assert_eq!(
            add_outcome(&add(&fixture.store.repository, "Tom").await),
            Success
        );
    })
    .await;
}
