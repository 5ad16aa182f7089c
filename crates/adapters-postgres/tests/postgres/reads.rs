//! Reads whose connection does not respond.

use std::sync::Arc;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::PetRepository;

use crate::{
    outcomes::{Success, Timeout, eventually, find, read_outcome},
    store::{ProxiedStore, few_seconds},
};

/// The proxy holds the response with this pet, and all later responses on its connection.
async fn with_a_held_response(connections_per_worker: usize) -> (ProxiedStore, i64) {
    let settings = PostgresSettings { connections_per_worker, ..few_seconds() };
    let proxied = ProxiedStore::new(settings).await;
    let held = proxied.observer.column("INSERT INTO pets (name, category_id) VALUES ('held', 1) RETURNING id").await;
    proxied.proxy.hold("held");
    (proxied, held[0].parse().expect("an id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_does_not_respond_to_one_read_is_replaced() {
    let (proxied, held) = with_a_held_response(1).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    let repository = &store.repository;
    let (slow, behind) = tokio::join!(find(repository, held), find(repository, 1));
    // The first timeout marks the connection as broken; the other read may find it closed.
    let outcomes = [read_outcome(&slow), read_outcome(&behind)];
    assert!(outcomes.contains(&Timeout) && !outcomes.contains(&Success), "{outcomes:?}");
    assert_eq!(proxy.held(), 1);
    eventually("it is replaced", async || read_outcome(&find(repository, 1).await) == Success).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_connection_does_not_respond_another_one_serves() {
    let (proxied, held) = with_a_held_response(2).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    let repository = &store.repository;
    let held = tokio::spawn({
        let repository = Arc::clone(repository);
        async move { read_outcome(&find(&repository, held).await) }
    });
    eventually("the response is held", async || proxy.held() == 1).await;
    // No list contains the pet that is held.
    for _ in 0..5 {
        assert_eq!(read_outcome(&find(repository, 1).await), Success);
        assert_eq!(read_outcome(&repository.list(None, None, 1).await), Success);
    }
    assert_eq!(held.await.expect("no panic"), Timeout);
    assert_eq!(proxy.held(), 1);
    // Only the other connection is used from now on.
    for _ in 0..10 {
        assert_eq!(read_outcome(&find(repository, 1).await), Success);
    }
}
