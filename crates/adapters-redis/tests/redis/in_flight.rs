//! A key is revoked while the response to its lookup is in flight.

use std::sync::Arc;

use animal_store_app::ApiKey;
use futures_util::FutureExt;
use tokio::task::JoinHandle;

use crate::{
    requests::wait_until,
    setup::{Proxied, find, long_timeouts, name},
};

/// Starts a lookup that Redis has responded to. The proxy holds the response.
async fn response_in_flight() -> (Proxied, ApiKey, JoinHandle<Option<Arc<ApiKey>>>) {
    let proxied = Proxied::with_proxy(long_timeouts(), |proxy| proxy.hold("label of key")).await;
    let key = proxied.keys.add("key", "token").await;
    for witness in ["before", "after"] {
        let is_cached = async || find(&proxied.directory, witness).now_or_never().is_some();
        wait_until("the witness is cached", is_cached).await;
    }
    invalidations_arrive(&proxied, "before").await;
    let lookup = start_lookup(&proxied);
    wait_until("the response is held up", async || proxied.proxy.held() == 1).await;
    (proxied, key, lookup)
}

/// Changes a cached token, the witness, and waits for its invalidation: invalidations of earlier changes arrive before
/// it.
async fn invalidations_arrive(proxied: &Proxied, witness: &str) {
    proxied.server.command(&["DEL", &name("shop:", witness)]);
    proxied.server.command(&["SET", &name("shop:", witness), "changed"]);
    wait_until("the witness is invalidated", async || find(&proxied.directory, witness).now_or_never().is_none()).await;
}

fn start_lookup(proxied: &Proxied) -> JoinHandle<Option<Arc<ApiKey>>> {
    let directory = Arc::clone(&proxied.directory);
    tokio::spawn(async move { find(&directory, "token").await.expect("find") })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_a_revocation_is_not_cached_after_it() {
    let (mut proxied, key, lookup) = response_in_flight().await;
    proxied.keys.revoke(&key).await;
    invalidations_arrive(&proxied, "after").await;
    proxied.proxy.heal();

    assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key), "it was valid when Redis was queried");
    assert_eq!(find(&proxied.directory, "token").await.expect("find"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_from_after_a_revocation_does_not_share_a_response_from_before_it() {
    let (mut proxied, key, lookup) = response_in_flight().await;
    proxied.keys.revoke(&key).await;
    invalidations_arrive(&proxied, "after").await;
    let later = start_lookup(&proxied);
    assert_eq!(proxied.proxy.held(), 1);
    proxied.proxy.heal();

    assert_eq!(later.await.expect("the lookup"), None);
    lookup.await.expect("the lookup");
    assert_eq!(find(&proxied.directory, "token").await.expect("find"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_a_change_does_not_prevent_the_caching_of_a_later_one() {
    let (mut proxied, key, lookup) = response_in_flight().await;
    proxied.keys.revoke(&key).await;
    let again = proxied.keys.add("key-again", "token").await;
    invalidations_arrive(&proxied, "after").await;
    let later = start_lookup(&proxied);
    proxied.proxy.heal();

    assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key));
    assert_eq!(later.await.expect("the lookup").as_deref(), Some(&again));
    let before = proxied.server.command_counts();
    for _ in 0..100 {
        assert_eq!(find(&proxied.directory, "token").await.expect("find").as_deref(), Some(&again));
    }
    assert_eq!(proxied.server.command_counts(), before, "it is not cached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_redis_was_flushed_is_not_cached_after_it() {
    let (mut proxied, _, lookup) = response_in_flight().await;
    proxied.server.command(&["FLUSHALL"]);
    invalidations_arrive(&proxied, "after").await;
    proxied.proxy.heal();

    lookup.await.expect("the lookup");
    assert_eq!(find(&proxied.directory, "token").await.expect("find"), None);
}
