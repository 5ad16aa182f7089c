//! After any failure of an add with a key, retries lead to one stored pet, and all responses have its id.

use std::time::Instant;

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    keyed::{Failed, Keyed, New, Replayed, add_keyed, add_keyed_until_stored},
    outcomes::{TEST_TIMEOUT, Unknown, eventually},
    store::{
        ProxiedStore, ServedStore, Store, both_modes, cut_when_held, few_seconds, in_both_modes, settings,
        short_timeout,
    },
};

/// A storage with an open connection for keys.
async fn keyed_store(settings: PostgresSettings) -> ProxiedStore {
    let proxied = ProxiedStore::new(settings).await;
    add_keyed_until_stored(&proxied.store.repository, "Rex").await;
    proxied
}

/// All of these results have the id of the stored pet.
async fn is_stored_once(proxied: &ProxiedStore, name: &str, results: &[Keyed]) {
    let stored = proxied.observer.column(&format!("SELECT id FROM pets WHERE name = '{name}'")).await;
    let returned: Vec<_> = results.iter().map(|result| result.id().to_string()).collect();
    assert!(stored.len() == 1 && returned.iter().all(|id| *id == stored[0]), "{stored:?}, but {returned:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_of_a_request_whose_response_was_lost_is_a_replay() {
    for (settings, done) in both_modes(&settings()).into_iter().zip(["SELECT 1\0", "COMMIT\0Z"]) {
        let mut proxied = keyed_store(settings).await;
        proxied.proxy.hold(done);
        let lost = cut_when_held(&proxied.proxy, add_keyed(&proxied.store.repository, "lost")).await;
        assert_eq!(lost, Failed(Unknown));
        proxied.proxy.heal();
        let again = add_keyed_until_stored(&proxied.store.repository, "lost").await;
        assert!(matches!(again, Replayed(_)), "it was stored: {again:?}");
        is_stored_once(&proxied, "lost", &[again]).await;
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
    assert_eq!(add_keyed(&proxied.store.repository, "lost").await, Failed(Unknown));
    let first = add_keyed_until_stored(&other_store.repository, "lost").await;
    assert!(matches!(first, New(_)));
    is_stored_once(&proxied, "lost", &[first]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_of_a_request_whose_commit_waited_for_a_standby_is_a_replay() {
    in_both_modes(&few_seconds(), async |settings| {
        let ServedStore { store, server } = ServedStore::new(settings).await;
        add_keyed_until_stored(&store.repository, "another").await;
        server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'missing'");
        server.sql("postgres", "SELECT pg_reload_conf()");
        let start = Instant::now();
        let mut number = 0;
        let lost = loop {
            let name = format!("lost {number}");
            match add_keyed(&store.repository, &name).await {
                Failed(Unknown) => break name,
                other => assert!(start.elapsed() < TEST_TIMEOUT, "it does not wait: {other:?}"),
            }
            number += 1;
        };
        // A retry meanwhile waits as well.
        eventually("a retry waits", async || add_keyed(&store.repository, &lost).await == Failed(Unknown)).await;
        server.sql("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
        server.sql("postgres", "SELECT pg_reload_conf()");
        let again = add_keyed_until_stored(&store.repository, &lost).await;
        assert!(matches!(again, Replayed(_)), "{again:?}");
        let stored = server.sql("postgres", &format!("SELECT id FROM pets WHERE name = '{lost}'"));
        assert_eq!(stored, again.id().to_string());
    })
    .await;
}
