//! Adds whose connection fails: a response means that the pet is stored once, "not stored" that it never will be, and
//! an unknown outcome that it is stored at most once. With a key, retries lead to one stored pet.

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::FaultProxy;
use tokio::time::timeout;

use crate::{
    fixture::Fixture,
    keyed::{Failed, New, Replayed, add_keyed, add_keyed_until_stored},
    outcomes::{
        PROMPT, Success, Unavailable, Unknown, add, add_outcome, wait_for_outcome, wait_until,
    },
    sql_session::SqlSession,
    store::{
        Store, both_modes, cut_when_held, few_seconds, in_both_modes, settings, short_timeout,
    },
    unreplicated::require_missing_standby,
};

/// The number of lost pets that are stored, after all of these backends have ended.
async fn stored_in_the_end(
    fixture: &Fixture,
    proxy: &mut FaultProxy,
    backends: &[String],
) -> usize {
    proxy.heal();
    fixture.observer.wait_until_ended(backends).await;
    wait_for_outcome(&fixture.store.repository, Success).await;
    fixture.observer.named("lost").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_add_whose_connection_is_cut_is_unknown_unless_its_commit_was_not_requested() {
    let [plain, pooling] = both_modes(&settings());
    // What does not arrive: the add, the commit, or the end of PostgreSQL's response after the commit. An add has a
    // commit of its own only in a transaction.
    for (settings, held, expected, stored) in [
        (&plain, "lost", Unknown, 0),
        (&pooling, "lost", Unavailable, 0),
        (&pooling, "COMMIT\0", Unknown, 0),
        (&plain, "SELECT 1\0", Unknown, 1),
        (&pooling, "COMMIT\0Z", Unknown, 1),
    ] {
        let (fixture, mut proxy) = Fixture::proxied(settings.clone()).await;
        let backends = fixture.observer.backends().await;
        proxy.hold(held);
        let added = cut_when_held(&proxy, add(&fixture.store.repository, "lost")).await;
        assert_eq!(add_outcome(&added), expected, "{held:?}");
        assert_eq!(
            stored_in_the_end(&fixture, &mut proxy, &backends).await,
            stored,
            "{held:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_add_whose_connection_the_server_terminates_before_a_commit_fails_at_once() {
    for (settings, expected) in both_modes(&settings())
        .into_iter()
        .zip([Unknown, Unavailable])
    {
        let (fixture, mut proxy) = Fixture::proxied(settings).await;
        let backends = fixture.observer.backends().await;
        let locking = SqlSession::of(&fixture.database).await;
        locking.lock().await;
        let end = async {
            fixture.observer.wait_for_table_locks(1).await;
            fixture.observer.terminate_backends().await;
        };
        // The lock is held until then.
        let calls = async { tokio::join!(add(&fixture.store.repository, "lost"), end) };
        let (added, ()) = timeout(PROMPT, calls).await.expect("it fails at once");
        assert_eq!(add_outcome(&added), expected);
        locking.unlock().await;
        assert_eq!(stored_in_the_end(&fixture, &mut proxy, &backends).await, 0);
    }
}

/// A storage with an open connection for keys.
async fn keyed_store(settings: PostgresSettings) -> (Fixture, FaultProxy) {
    let (fixture, proxy) = Fixture::proxied(settings).await;
    add_keyed_until_stored(&fixture.store.repository, "Rex").await;
    (fixture, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_request_whose_response_was_lost_is_a_replay() {
    for (settings, done) in both_modes(&settings())
        .into_iter()
        .zip(["SELECT 1\0", "COMMIT\0Z"])
    {
        let (fixture, mut proxy) = keyed_store(settings).await;
        proxy.hold(done);
        let lost = cut_when_held(&proxy, add_keyed(&fixture.store.repository, "lost")).await;
        assert_eq!(lost, Failed(Unknown));
        proxy.heal();
        let again = add_keyed_until_stored(&fixture.store.repository, "lost").await;
        let stored = fixture
            .observer
            .column("SELECT id FROM pets WHERE name = 'lost'")
            .await;
        assert_eq!(
            (again, stored),
            (Replayed(again.id()), vec![again.id().to_string()])
        );
    }
}

/// The server does not notice that the client has disconnected, and ends the transaction after its own timeout.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_whose_commit_never_arrives_does_not_block_its_key() {
    let [_, settings] = both_modes(&short_timeout());
    let (fixture, proxy) = keyed_store(settings.clone()).await;
    let other_store = Store::at(fixture.database.url(), settings).await;
    add_keyed_until_stored(&other_store.repository, "another").await;
    proxy.hold("COMMIT\0");
    assert_eq!(
        add_keyed(&fixture.store.repository, "lost").await,
        Failed(Unknown)
    );
    let first = add_keyed_until_stored(&other_store.repository, "lost").await;
    let stored = fixture
        .observer
        .column("SELECT id FROM pets WHERE name = 'lost'")
        .await;
    assert_eq!(
        (first, stored),
        (New(first.id()), vec![first.id().to_string()])
    );
}

/// Commits that are not cancelled would use up all connections of the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_waits_for_a_standby_is_unknown_and_cancelled_and_a_retry_is_a_replay() {
    in_both_modes(&few_seconds(), async |settings| {
        let (server, store) = Store::served(settings).await;
        let sql = |sql: &str| server.sql("postgres", sql);
        require_missing_standby(&server).await;
        assert_eq!(add_keyed(&store.repository, "lost").await, Failed(Unknown));
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        wait_until("the commit is cancelled", async || sql(waiting) == "0").await;
        let retry_waits = async || add_keyed(&store.repository, "lost").await == Failed(Unknown);
        wait_until("a retry waits as well", retry_waits).await;
        sql("ALTER SYSTEM RESET synchronous_standby_names");
        sql("SELECT pg_reload_conf()");
        let again = add_keyed_until_stored(&store.repository, "lost").await;
        let stored = sql("SELECT id FROM pets WHERE name = 'lost'");
        assert_eq!(
            (again, stored),
            (Replayed(again.id()), again.id().to_string())
        );
    })
    .await;
}
