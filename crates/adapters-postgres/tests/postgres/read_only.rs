//! A server that does not write any more, as one that has become a standby.

use std::time::Instant;

use animal_store_adapters_postgres::PgStorage;

use crate::{
    batches::Bench,
    calls::{AT_ONCE, Answered, PATIENCE, Unavailable, a_moment, comes_to, comes_to_be_ready, each, not_ready},
    store::{Served, Store, settings},
};

async fn is_found_out(storage: &PgStorage) {
    let start = Instant::now();
    while not_ready(storage).await.as_deref() != Some("PostgreSQL is read-only") {
        assert!(start.elapsed() < PATIENCE, "it is not found out");
        a_moment().await;
    }
}

async fn only_reads(store: &Store) {
    let start = Instant::now();
    while each(&store.repository, AT_ONCE).await != [Answered, Answered, Unavailable] {
        assert!(start.elapsed() < PATIENCE, "it does not come to that");
        a_moment().await;
    }
}

/// Reads go on meanwhile. Which connection is tried again does not matter.
async fn adds_nothing(store: &Store) {
    for _ in 0..20 {
        assert_eq!(each(&store.repository, AT_ONCE).await, [Answered, Answered, Unavailable]);
        assert!(not_ready(&store.storage).await.is_some());
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_connections_that_cannot_write_are_found_out() {
    let Bench { store, other, database } = Bench::new().await;
    // All connections are open.
    comes_to(&store.repository, Answered, AT_ONCE).await;
    comes_to_be_ready(&store.storage).await;
    let set = format!("ALTER DATABASE {} SET default_transaction_read_only", database.name());
    other.run(&format!("{set} = on")).await;
    assert_eq!(each(&store.repository, AT_ONCE).await, [Answered; 3]);
    assert_eq!(not_ready(&store.storage).await, None, "they can still write");

    let before = other.backends().await;
    other.terminate_backends().await;
    other.wait_for_the_end_of(&before).await;
    is_found_out(&store.storage).await;
    only_reads(&store).await;
    let count = other.count("pets").await;
    adds_nothing(&store).await;
    assert_eq!(other.count("pets").await, count);

    other.run(&format!("{set} = off")).await;
    comes_to(&store.repository, Answered, AT_ONCE).await;
    comes_to_be_ready(&store.storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_cannot_write_any_more_are_found_out() {
    let Served { store, server } = Served::new(settings()).await;
    let set = |value: &str| {
        server.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        server.sql("postgres", "SELECT pg_reload_conf()");
    };
    set("on");
    is_found_out(&store.storage).await;
    only_reads(&store).await;
    let count = server.sql("postgres", "SELECT count(*) FROM pets");
    adds_nothing(&store).await;
    assert_eq!(server.sql("postgres", "SELECT count(*) FROM pets"), count);
    set("off");
    comes_to(&store.repository, Answered, AT_ONCE).await;
    comes_to_be_ready(&store.storage).await;
}
