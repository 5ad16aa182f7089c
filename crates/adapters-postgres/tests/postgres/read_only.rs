//! A server that has become read-only, such as a standby.

use animal_store_adapters_postgres::PgStorage;

use crate::{
    fixture::Fixture,
    outcomes::{
        PROMPT, Success, Unavailable, eventually, list_find_add, not_ready, wait_for_outcome, wait_until_ready,
    },
    store::{ServedStore, Store, settings},
};

async fn wait_until_detected(storage: &PgStorage) {
    let read_only = Some("PostgreSQL is read-only");
    eventually("it is detected", async || not_ready(storage).await.as_deref() == read_only).await;
}

async fn only_reads(store: &Store) {
    let expected = [Success, Success, Unavailable];
    eventually("only adds fail", async || list_find_add(&store.repository, PROMPT).await == expected).await;
}

/// Adds fail, and reads continue.
async fn adds_nothing(store: &Store) {
    for _ in 0..10 {
        assert_eq!(list_find_add(&store.repository, PROMPT).await, [Success, Success, Unavailable]);
        assert!(not_ready(&store.storage).await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_connections_that_cannot_write_are_detected() {
    let Fixture { store, observer, database } = Fixture::new().await;
    // All connections are up.
    wait_for_outcome(&store.repository, Success, PROMPT).await;
    wait_until_ready(&store.storage).await;
    let set = format!("ALTER DATABASE {} SET default_transaction_read_only", database.name());
    observer.run(&format!("{set} = on")).await;
    assert_eq!(list_find_add(&store.repository, PROMPT).await, [Success; 3]);
    assert_eq!(not_ready(&store.storage).await, None, "they can still write");

    observer.wait_until_ended(&observer.terminate_backends().await).await;
    wait_until_detected(&store.storage).await;
    only_reads(&store).await;
    let count = observer.count("pets").await;
    adds_nothing(&store).await;
    assert_eq!(observer.count("pets").await, count);

    observer.run(&format!("{set} = off")).await;
    wait_for_outcome(&store.repository, Success, PROMPT).await;
    wait_until_ready(&store.storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_become_read_only_are_detected() {
    let ServedStore { store, server } = ServedStore::new(settings()).await;
    let set = |value: &str| {
        server.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        server.sql("postgres", "SELECT pg_reload_conf()");
    };
    set("on");
    wait_until_detected(&store.storage).await;
    only_reads(&store).await;
    let count = server.sql("postgres", "SELECT count(*) FROM pets");
    adds_nothing(&store).await;
    assert_eq!(server.sql("postgres", "SELECT count(*) FROM pets"), count);
    set("off");
    wait_for_outcome(&store.repository, Success, PROMPT).await;
    wait_until_ready(&store.storage).await;
}
