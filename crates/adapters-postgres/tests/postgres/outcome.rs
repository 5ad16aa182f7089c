//! Adds whose connection fails: a response means that the pet is stored once, "not stored" that it never will be, and
//! an unknown outcome that it is stored at most once.

use std::time::Instant;

use animal_store_app::ports::{AddPetError, StoreFailure};

use crate::{
    fixture::Fixture,
    metrics::failures,
    outcomes::{
        PROMPT, Success, TEST_TIMEOUT, Timeout, Unavailable, Unknown, add, add_outcome, eventually, reason,
        wait_for_outcome,
    },
    sql_session::SqlSession,
    store::{ProxiedStore, ServedStore, both_modes, cut_when_held, few_seconds, in_both_modes, settings},
};

/// The number of pets with this name, after all of these backends have ended.
async fn stored_in_the_end(proxied: &mut ProxiedStore, name: &str, backends: &[String]) -> usize {
    proxied.proxy.heal();
    proxied.observer.wait_until_ended(backends).await;
    wait_for_outcome(&proxied.store.repository, Success, TEST_TIMEOUT).await;
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
        assert_eq!(stored_in_the_end(&mut proxied, "lost", &backends).await, stored, "{held:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_whose_connection_the_server_terminates_before_a_commit_fails_at_once() {
    for (settings, expected) in both_modes(&settings()).into_iter().zip([Unknown, Unavailable]) {
        let mut proxied = ProxiedStore::new(settings).await;
        let backends = proxied.observer.backends().await;
        let locking = SqlSession::of(&proxied.database).await;
        locking.lock().await;
        let end = async {
            proxied.observer.wait_for_table_locks(1).await;
            proxied.observer.terminate_backends().await;
            Instant::now()
        };
        let (added, ended) = tokio::join!(add(&proxied.store.repository, "lost"), end);
        assert_eq!(add_outcome(&added), expected);
        assert!(ended.elapsed() < PROMPT);
        locking.unlock().await;
        assert_eq!(stored_in_the_end(&mut proxied, "lost", &backends).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_that_the_server_ends_in_time_is_counted_and_not_stored_and_costs_no_connection() {
    in_both_modes(&settings(), async |settings| {
        let proxied = ProxiedStore::new(settings).await;
        let registry = &proxied.store.registry;
        let (backends, timeouts) = (proxied.observer.backends().await, failures(registry, "timeout"));
        let locking = SqlSession::of(&proxied.database).await;
        locking.lock().await;
        let (added, ()) = tokio::join!(add(&proxied.store.repository, "never"), locking.cancel_waiting());
        assert_eq!(add_outcome(&added), Timeout);
        locking.unlock().await;
        assert_eq!(add_outcome(&add(&proxied.store.repository, "later").await), Success);
        assert_eq!(failures(registry, "timeout"), timeouts + 1);
        assert_eq!(proxied.observer.backends().await, backends);
        assert_eq!(proxied.observer.named("never").await, 0);
    })
    .await;
}

/// PostgreSQL ends a slow statement before the timeout for its response, so that the connection is not replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_ends_the_statement_of_an_add_after_three_quarters_of_the_timeout() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        fixture.trigger("RAISE 'the timeout is %', current_setting('statement_timeout') USING ERRCODE = '22000'").await;
        let added = add(&fixture.store.repository, "Rex").await;
        let Err(AddPetError::Store(StoreFailure::Unavailable(cause))) = added else { panic!("{added:?}") };
        let reason = reason(&*cause);
        assert!(reason.contains("the timeout is 22500ms"), "{reason}");
    })
    .await;
}

/// Otherwise these commits would use up all connections of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_waits_for_a_standby_is_unknown_and_is_cancelled() {
    let ServedStore { store, server } = ServedStore::new(few_seconds()).await;
    let count = || server.sql("postgres", "SELECT count(*) FROM pets").parse::<usize>().expect("a number");
    let before = count();
    server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'missing'");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let start = Instant::now();
    let mut adds = 1;
    while add_outcome(&add(&store.repository, "Rex").await) != Unknown {
        assert!(start.elapsed() < TEST_TIMEOUT, "it does not wait");
        adds += 1;
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    eventually("no commit waits", async || server.sql("postgres", waiting) == "0").await;
    assert_eq!(count(), before + adds);
}
