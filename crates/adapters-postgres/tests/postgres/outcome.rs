//! Adds whose connection fails: a response means that the pet is stored once, "not stored" that it never will be, and
//! an unknown outcome that it is stored at most once. With a key, retries lead to one stored pet.

use animal_store_app::test_support::{
    failures::{UNKNOWN, assert_fails},
    key_changes,
};

use crate::{
    keys::keys_of,
    prelude::*,
    store::{cut_when_held, set},
};

/// The number of lost pets that are stored, after all of these backends have ended.
async fn stored_in_the_end(fixture: &mut Fixture, backends: &[String]) -> usize {
    fixture.proxy.heal();
    fixture.observer.wait_until_ended(backends).await;
    fixture.wait_for(Success).await;
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
        let mut fixture = Fixture::with(settings.clone()).await;
        let backends = fixture.observer.backends().await;
        fixture.proxy.hold(held);
        let added = cut_when_held(&fixture.proxy, fixture.add("lost")).await;
        assert_eq!(add_outcome(&added), expected, "{held:?}");
        let found = stored_in_the_end(&mut fixture, &backends).await;
        assert_eq!(found, stored, "{held:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_add_whose_connection_the_server_terminates_before_a_commit_fails_at_once() {
    for (settings, expected) in both_modes(&settings())
        .into_iter()
        .zip([Unknown, Unavailable])
    {
        let mut fixture = Fixture::with(settings).await;
        let locking = SqlSession::of(&fixture.database).await;
        let added = locking.block(|| fixture.add("lost")).await;
        let backends = fixture.observer.terminate_backends().await;
        // The lock is held until then.
        let added = timeout(PROMPT, added).await.expect("it fails at once");
        assert_eq!(add_outcome(&added), expected);
        locking.unlock().await;
        assert_eq!(stored_in_the_end(&mut fixture, &backends).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_request_whose_response_was_lost_is_a_replay() {
    for (settings, done) in both_modes(&settings())
        .into_iter()
        .zip(["SELECT 1\0", "COMMIT\0Z"])
    {
        let mut fixture = Fixture::with(settings).await;
        fixture.proxy.hold(done);
        let lost = cut_when_held(&fixture.proxy, fixture.add_keyed("lost")).await;
        assert_eq!(lost, Failed(Unknown));
        fixture.proxy.heal();
        let again = fixture.add_keyed_until_stored("lost").await;
        assert!(matches!(again, Replayed(_)));
        assert_eq!(fixture.observer.named("lost").await, 1);
    }
}

/// The server does not notice that the client has disconnected, and ends the transaction after its own timeout.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_whose_commit_never_arrives_does_not_block_its_key() {
    let [_, settings] = both_modes(&few_seconds());
    let fixture = Fixture::with(settings.clone()).await;
    let other_store = Store::at(fixture.database.url(), settings).await;
    other_store.add_keyed_until_stored("another").await;
    fixture.proxy.hold("COMMIT\0");
    assert_eq!(fixture.add_keyed("lost").await, Failed(Unknown));
    let first = other_store.add_keyed_until_stored("lost").await;
    assert!(matches!(first, New(_)));
    assert_eq!(fixture.observer.named("lost").await, 1);
}

/// Commits that are not cancelled would use up all connections of the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_waits_for_a_standby_is_unknown_and_cancelled_and_a_retry_is_a_replay() {
    in_both_modes(&few_seconds(), async |settings| {
        let (server, store) = Store::served(settings).await;
        require_missing_standby(&server).await;
        assert_eq!(store.add_keyed("lost").await, Failed(Unknown));
        let is_cancelled = async || server.sql(WAITING).is_empty();
        wait_until("the commit is cancelled", is_cancelled).await;
        let retry_waits = async || store.add_keyed("lost").await == Failed(Unknown);
        wait_until("a retry waits as well", retry_waits).await;
        set(&server, STANDBYS, "").await;
        let again = store.add_keyed_until_stored("lost").await;
        assert!(matches!(again, Replayed(_)));
        assert_eq!(
            server.sql("SELECT count(*) FROM pets WHERE name = 'lost'"),
            "1"
        );
    })
    .await;
}

const STANDBYS: &str = "synchronous_standby_names";
const WAITING: &str = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// Makes every later commit wait for a standby that does not exist.
async fn require_missing_standby(server: &PostgresServer) {
    set(server, STANDBYS, "missing").await;
    // The process that makes checkpoints tells the others of the setting before it makes one.
    server.sql("CHECKPOINT");
}

/// PostgreSQL warns, and commits.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_wait_an_administrator_cancels_has_an_unknown_outcome() {
    in_both_modes(&settings(), async |settings| {
        let (server, store) = Store::served(settings).await;
        set(&server, "client_min_messages", "error").await;
        require_missing_standby(&server).await;
        let added = store.add("waiting");
        let waits = async || !server.sql(WAITING).is_empty();
        wait_until("the commit waits", waits).await;
        let cancel = format!("SELECT pg_cancel_backend(({WAITING}))");
        assert_eq!(server.sql(&cancel), "t");
        assert_eq!(add_outcome(&added.await), Unknown);
        assert_eq!(
            server.sql("SELECT count(*) FROM pets WHERE name = 'waiting'"),
            "1"
        );
    })
    .await;
}

/// Its locks would hold up every other change.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_keys_that_waits_for_a_standby_is_unknown_and_cancelled() {
    let server = PostgresServer::start();
    let keys = keys_of(&server.url(), few_seconds()).await;
    keys.add(&["leaked", "another"]).await;
    require_missing_standby(&server).await;
    for id in ["leaked", "another"] {
        let revoked = keys.change(key_changes::revoke(id), "test").await;
        assert_fails(revoked, UNKNOWN);
    }
}

/// The warning of a trigger is none of the commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_warns_changes_no_outcome() {
    Fixture::in_both_modes(async |fixture| {
        fixture.trigger_at_commit("RAISE WARNING 'look'").await;
        assert_eq!(add_outcome(&fixture.add("Tom").await), Success);
    })
    .await;
}
