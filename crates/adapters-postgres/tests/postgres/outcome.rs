//! Adds whose connection fails: a response means that the pet is stored once, "not stored" that it never will be, and
//! an unknown outcome that it is stored at most once. With a key, retries lead to one stored pet.

use animal_store_adapters_postgres::PostgresSettings;
use tokio::time::timeout;

use crate::{
    keyed::{Failed, New, Replayed, add_keyed, add_keyed_until_stored},
    outcomes::{
        PROMPT, Success, Unavailable, Unknown, add, add_outcome, wait_for_outcome, wait_until,
    },
    sql_session::SqlSession,
    store::{
        ProxiedStore, ServedStore, Store, both_modes, cut_when_held, few_seconds, in_both_modes,
        settings, short_timeout,
    },
    unreplicated::require_missing_standby,
};

/// The number of pets with this name, after all of these backends have ended.
async fn stored_in_the_end(proxied: &mut ProxiedStore, name: &str, backends: &[String]) -> usize {
    proxied.proxy.heal();
    proxied.observer.wait_until_ended(backends).await;
    wait_for_outcome(&proxied.store.repository, Success).await;
    proxied.observer.named(name).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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
        let mut proxied = ProxiedStore::new(settings.clone()).await;
        let backends = proxied.observer.backends().await;
        proxied.proxy.hold(held);
        let added = cut_when_held(&proxied.proxy, add(&proxied.store.repository, "lost")).await;
        assert_eq!(add_outcome(&added), expected, "{held:?}");
        assert_eq!(
            stored_in_the_end(&mut proxied, "lost", &backends).await,
            stored,
            "{held:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_whose_connection_the_server_terminates_before_a_commit_fails_at_once() {
    for (settings, expected) in both_modes(&settings())
        .into_iter()
        .zip([Unknown, Unavailable])
    {
        let mut proxied = ProxiedStore::new(settings).await;
        let backends = proxied.observer.backends().await;
        let locking = SqlSession::of(&proxied.database).await;
        locking.lock().await;
        let end = async {
            proxied.observer.wait_for_table_locks(1).await;
            proxied.observer.terminate_backends().await;
        };
        // The lock is held until then.
        let calls = async { tokio::join!(add(&proxied.store.repository, "lost"), end) };
        let (added, ()) = timeout(PROMPT, calls).await.expect("it fails at once");
        assert_eq!(add_outcome(&added), expected);
        locking.unlock().await;
        assert_eq!(stored_in_the_end(&mut proxied, "lost", &backends).await, 0);
    }
}

/// A storage with an open connection for keys.
async fn keyed_store(settings: PostgresSettings) -> ProxiedStore {
    let proxied = ProxiedStore::new(settings).await;
    add_keyed_until_stored(&proxied.store.repository, "Rex").await;
    proxied
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_of_a_request_whose_response_was_lost_is_a_replay() {
    for (settings, done) in both_modes(&settings())
        .into_iter()
        .zip(["SELECT 1\0", "COMMIT\0Z"])
    {
        let mut proxied = keyed_store(settings).await;
        proxied.proxy.hold(done);
        let lost =
            cut_when_held(&proxied.proxy, add_keyed(&proxied.store.repository, "lost")).await;
        assert_eq!(lost, Failed(Unknown));
        proxied.proxy.heal();
        let again = add_keyed_until_stored(&proxied.store.repository, "lost").await;
        let stored = proxied
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_commit_never_arrives_does_not_block_its_key() {
    let [_, settings] = both_modes(&short_timeout());
    let proxied = keyed_store(settings.clone()).await;
    let other_store = Store::at(proxied.database.url(), settings).await;
    add_keyed_until_stored(&other_store.repository, "another").await;
    proxied.proxy.hold("COMMIT\0");
    assert_eq!(
        add_keyed(&proxied.store.repository, "lost").await,
        Failed(Unknown)
    );
    let first = add_keyed_until_stored(&other_store.repository, "lost").await;
    let stored = proxied
        .observer
        .column("SELECT id FROM pets WHERE name = 'lost'")
        .await;
    assert_eq!(
        (first, stored),
        (New(first.id()), vec![first.id().to_string()])
    );
}

/// Commits that are not cancelled would use up all connections of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_waits_for_a_standby_is_unknown_and_cancelled_and_a_retry_is_a_replay() {
    in_both_modes(&few_seconds(), async |settings| {
        let ServedStore { store, server } = ServedStore::new(settings).await;
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
