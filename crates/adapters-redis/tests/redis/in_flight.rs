//! A key is revoked while the response to its lookup is in flight.

use std::sync::Arc;

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::ApiKey;
use animal_store_test_servers::{FaultProxy, RedisServer};
use futures_util::FutureExt;
use tokio::task::JoinHandle;

use crate::{
    requests::wait_until,
    setup::{Keys, find, long_timeouts, name},
};

struct InFlight {
    directory: Arc<RedisApiKeyDirectory>,
    proxy: FaultProxy,
    keys: Keys,
    key: ApiKey,
    lookup: JoinHandle<Option<Arc<ApiKey>>>,
    server: RedisServer,
}

/// Starts a lookup that Redis has responded to. The proxy holds the response.
async fn response_in_flight() -> InFlight {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("label of key");
    let keys = Keys::at(&server.url(), long_timeouts());
    let directory = Arc::new(Keys::at(&format!("redis://{}", proxy.address()), long_timeouts()).directory().await);
    let key = keys.add("key", "token").await;
    for witness in ["before", "after"] {
        wait_until("the witness is cached", async || find(&directory, witness).now_or_never().is_some()).await;
    }
    invalidations_arrive(&directory, &server, "before").await;
    let lookup = start_lookup(&directory);
    wait_until("the response is held up", async || proxy.held() == 1).await;
    InFlight { directory, proxy, keys, key, lookup, server }
}

/// Changes a cached token, the witness, and waits for its invalidation: invalidations of earlier changes arrive before
/// it.
async fn invalidations_arrive(directory: &RedisApiKeyDirectory, server: &RedisServer, witness: &str) {
    server.command(&["DEL", &name("shop:", witness)]);
    server.command(&["SET", &name("shop:", witness), "changed"]);
    wait_until("the witness is invalidated", async || find(directory, witness).now_or_never().is_none()).await;
}

fn start_lookup(directory: &Arc<RedisApiKeyDirectory>) -> JoinHandle<Option<Arc<ApiKey>>> {
    let directory = Arc::clone(directory);
    tokio::spawn(async move { find(&directory, "token").await.expect("find") })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_a_revocation_is_not_cached_after_it() {
    let InFlight { directory, mut proxy, keys, key, lookup, server } = response_in_flight().await;
    keys.revoke(&key).await;
    invalidations_arrive(&directory, &server, "after").await;
    proxy.heal();

    assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key), "it was valid when Redis was queried");
    assert_eq!(find(&directory, "token").await.expect("find"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_from_after_a_revocation_does_not_share_a_response_from_before_it() {
    let InFlight { directory, mut proxy, keys, key, lookup, server } = response_in_flight().await;
    keys.revoke(&key).await;
    invalidations_arrive(&directory, &server, "after").await;
    let later = start_lookup(&directory);
    assert_eq!(proxy.held(), 1);
    proxy.heal();

    assert_eq!(later.await.expect("the lookup"), None);
    lookup.await.expect("the lookup");
    assert_eq!(find(&directory, "token").await.expect("find"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_a_change_does_not_prevent_the_caching_of_a_later_one() {
    let InFlight { directory, mut proxy, keys, key, lookup, server } = response_in_flight().await;
    keys.revoke(&key).await;
    let again = keys.add("key-again", "token").await;
    invalidations_arrive(&directory, &server, "after").await;
    let later = start_lookup(&directory);
    proxy.heal();

    assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key));
    assert_eq!(later.await.expect("the lookup").as_deref(), Some(&again));
    let before = server.command_counts();
    for _ in 0..100 {
        assert_eq!(find(&directory, "token").await.expect("find").as_deref(), Some(&again));
    }
    assert_eq!(server.command_counts(), before, "it is not cached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_from_before_redis_was_flushed_is_not_cached_after_it() {
    let InFlight { directory, mut proxy, lookup, server, .. } = response_in_flight().await;
    server.command(&["FLUSHALL"]);
    invalidations_arrive(&directory, &server, "after").await;
    proxy.heal();

    lookup.await.expect("the lookup");
    assert_eq!(find(&directory, "token").await.expect("find"), None);
}
