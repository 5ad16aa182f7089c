//! How long a revoked key is still accepted, for each state of the connection. Time counts from the moment when the
//! store has confirmed the revocation.
//!
//! The bound of one lease needs no margin for a busy machine: it counts from a `PING` that was sent before.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::ApiKey;
use animal_store_test_servers::{FaultProxy, RedisServer};
use futures_util::future::join_all;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    requests::{Accepted, Failed, Refused, accepted_for, becomes, changes_to},
    setup::{Keys, LEASE, Proxied, TEST_TIMEOUT, find, long_lease, long_timeouts, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_healthy_or_slow_connection_a_key_is_accepted_until_its_invalidation_arrives() {
    for (delay, keys) in [(Duration::ZERO, 25), (Duration::from_millis(20), 3)] {
        let proxied = Proxied::with_proxy(long_timeouts(), |proxy| proxy.delay(delay)).await;
        for number in 0..keys {
            let token = format!("token-{number}");
            let key = proxied.add_and_cache(&format!("key-{number}"), &token).await;
            proxied.keys.revoke(&key).await;
            changes_to(&proxied.directory, &token, Refused).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_frozen_or_too_slow_connection_a_key_is_accepted_for_one_lease_at_most() {
    let faults: [fn(&FaultProxy); 2] = [FaultProxy::freeze, |proxy| proxy.delay(LEASE)];
    // At several moments between two `PING`s.
    let moments = [0, 60, 120, 180].map(Duration::from_millis);
    join_all(moments.into_iter().flat_map(|wait| faults.map(|fault| (wait, fault))).map(async |(wait, fault)| {
        let proxied = Proxied::new(settings("shop:")).await;
        let key = proxied.add_and_cache("key", "token").await;
        accepted_for(&proxied.directory, "token", Instant::now(), Instant::now() + wait).await;
        fault(&proxied.proxy);
        is_accepted_for_one_lease_at_most(proxied, key).await;
    }))
    .await;
}

async fn is_accepted_for_one_lease_at_most(mut proxied: Proxied, key: ApiKey) {
    proxied.keys.revoke(&key).await;
    let revoked = Instant::now();
    let (window, last) = accepted_for(&proxied.directory, "token", revoked, revoked + 2 * LEASE).await;
    assert!(window < LEASE, "{window:?}");
    assert_eq!(last, Failed);

    proxied.proxy.heal();
    becomes(&proxied.directory, "token", Refused).await;
}

/// The connection with the invalidations is held up, and the connection for lookups is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_only_invalidations_are_held_up_a_key_is_accepted_for_one_lease_at_most() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("invalidate");
    let keys = Keys::at(&server.url(), settings("shop:"));
    let key = keys.add("key", "token").await;
    let directory = Keys::at(&format!("redis://{}", proxy.address()), settings("shop:")).directory().await;
    becomes(&directory, "token", Accepted).await;
    keys.revoke(&key).await;
    let revoked = Instant::now();
    let (window, _) = accepted_for(&directory, "token", revoked, revoked + 2 * LEASE).await;
    assert_eq!(proxy.held(), 1);
    assert!(window < LEASE, "{window:?}");
    becomes(&directory, "token", Refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_connection_was_closed_no_cached_key_is_accepted() {
    let mut proxied = Proxied::new(long_lease()).await;
    for number in 0..2 {
        let token = format!("token-{number}");
        let key = proxied.add_and_cache(&format!("key-{number}"), &token).await;
        proxied.proxy.refuse();
        proxied.keys.revoke(&key).await;
        changes_to(&proxied.directory, &token, Failed).await;

        proxied.proxy.heal();
        becomes(&proxied.directory, &token, Refused).await;
    }
}

/// A session without invalidations is as useless as one without lookups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_redis_closed_either_connection_a_revoked_key_is_not_accepted() {
    let proxied = Proxied::new(long_timeouts()).await;
    for number in 0..4 {
        let token = format!("token-{number}");
        let key = proxied.add_and_cache(&format!("key-{number}"), &token).await;
        let invalidations = number % 2 == 0;
        let clients = proxied.server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
        let mut clients = clients.lines().filter(|client| client.ends_with(" resp=3"));
        let client = clients.find(|client| client.contains(" flags=tB ") == invalidations).expect("the connection");
        let id = client.split([' ', '=']).nth(1).expect("its id");
        assert_eq!(proxied.server.command(&["CLIENT", "KILL", "ID", id]), "1");

        proxied.keys.revoke(&key).await;
        changes_to(&proxied.directory, &token, Refused).await;
    }
}

/// The store waits for the server, so the revocation is confirmed when the server has resumed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_stopped_a_key_is_accepted_for_one_lease_at_most_and_refused_after_its_revocation() {
    let proxied = Proxied::new(settings("shop:")).await;
    let key = proxied.add_and_cache("key", "token").await;
    let Proxied { directory, keys, proxy: _proxy, server, .. } = proxied;
    server.pause();
    let paused = Instant::now();
    let revocation = tokio::spawn(async move { keys.revoke(&key).await });
    let (window, last) = accepted_for(&directory, "token", paused, paused + 2 * LEASE).await;
    assert!(window < LEASE, "{window:?}");
    assert_eq!(last, Failed);

    server.resume();
    revocation.await.expect("the revocation does not panic");
    changes_to(&directory, "token", Refused).await;
}

/// This includes the task that supervises the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_has_to_run_for_a_lease_to_expire() {
    let proxied = Proxied::new(settings("shop:")).await;
    let key = proxied.keys.add("key", "token").await;
    let url = proxied.server.url();
    let (sender, receiver) = oneshot::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let blocked = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let directory = runtime.block_on(async {
            let directory = Keys::at(&url, settings("shop:")).directory().await;
            becomes(&directory, "token", Accepted).await;
            directory
        });
        // From here on, nothing runs on this runtime.
        sender.send(directory).ok().expect("the test waits for it");
        stopped.recv().expect_err("the sender is dropped");
    });
    let directory: RedisApiKeyDirectory = receiver.await.expect("a directory");
    proxied.keys.revoke(&key).await;
    let revoked = Instant::now();
    let mut window = Duration::ZERO;
    loop {
        let sent = revoked.elapsed();
        // A lookup that the cache cannot serve never ends.
        let found = timeout(LEASE / 4, find(&directory, "token")).await;
        if !found.is_ok_and(|found| found.is_ok_and(|key| key.is_some())) {
            break;
        }
        window = sent;
        assert!(window < TEST_TIMEOUT, "the lease does not expire");
    }
    assert!(window < LEASE, "{window:?}");
    drop(stop);
    blocked.join().expect("the thread does not panic");
}
