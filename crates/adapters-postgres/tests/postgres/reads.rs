//! A read whose connection does not respond.

use std::sync::Arc;

use animal_store_app::ports::PetRepository;

use crate::{
    outcomes::{Success, Timeout, eventually, find, read_outcome},
    store::{ProxiedStore, few_seconds},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_connection_does_not_respond_another_one_serves() {
    let ProxiedStore { store, proxy, observer, .. } = &ProxiedStore::new(few_seconds()).await;
    let held = observer.column("INSERT INTO pets (name, category_id) VALUES ('held', 1) RETURNING id").await;
    let held = held[0].parse().expect("an id");
    // The proxy holds the response with this pet, and all later responses on its connection.
    proxy.hold("held");
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
