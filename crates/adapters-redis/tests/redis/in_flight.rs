//! A key is revoked while the response to its lookup is in flight.

use std::sync::Arc;

use animal_store_app::ApiKey;
use futures_util::FutureExt;
use tokio::task::JoinHandle;

use crate::{
    requests::{Accepted, Refused, cached, wait_until},
    setup::{Proxied, find, long_timeouts, name, run},
};

/// Starts a lookup that Redis has responded to. The proxy holds the response.
async fn response_in_flight() -> (Proxied, ApiKey, JoinHandle<Option<Arc<ApiKey>>>) {
    let proxied = Proxied::with_proxy(long_timeouts(), |proxy| proxy.hold("label of key")).await;
    let key = proxied.keys.add("key", "token").await;
    for witness in ["before", "after"] {
        let is_cached = async || cached(&proxied.directory, witness) == Some(Refused);
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
    run(&proxied.server, &format!("SET {} changed", name(witness)));
    wait_until("the witness is invalidated", async || find(&proxied.directory, witness).now_or_never().is_none()).await;
}

fn start_lookup(proxied: &Proxied) -> JoinHandle<Option<Arc<ApiKey>>> {
    let directory = Arc::clone(&proxied.directory);
    tokio::spawn(async move { find(&directory, "token").await.expect("find") })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_a_key_was_removed_is_not_cached_after_it() {
    for command in [format!("DEL {}", name("token")), "FLUSHALL".to_owned()] {
        let (mut proxied, key, lookup) = response_in_flight().await;
        run(&proxied.server, &command);
        invalidations_arrive(&proxied, "after").await;
        proxied.proxy.heal();

        assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key), "it was valid when Redis was queried");
        assert_eq!(find(&proxied.directory, "token").await.expect("find"), None, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_from_after_a_revocation_does_not_share_a_response_from_before_it() {
    let (mut proxied, _, lookup) = response_in_flight().await;
    proxied.keys.revoke("key").await;
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
    proxied.keys.revoke("key").await;
    let again = proxied.keys.add("key-again", "token").await;
    invalidations_arrive(&proxied, "after").await;
    let later = start_lookup(&proxied);
    proxied.proxy.heal();

    assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key));
    assert_eq!(later.await.expect("the lookup").as_deref(), Some(&again));
    assert_eq!(cached(&proxied.directory, "token"), Some(Accepted));
}
