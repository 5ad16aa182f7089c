//! How long a revoked key is still accepted, for each state of the connection. Time counts from the moment when the
//! store has confirmed the revocation. `links.rs` has the faults of a connection that last.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_test_servers::{FaultProxy, RedisServer};
use futures_util::future::join_all;
use tokio::{join, sync::oneshot, time::timeout};

use crate::{
    requests::{Accepted, Refused, becomes, changes_to, pause, use_token},
    setup::{Keys, LEASE, Proxied, find, long_timeouts, run, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_healthy_or_slow_connection_a_key_is_accepted_until_its_invalidation_arrives() {
    for delay in [Duration::ZERO, Duration::from_millis(20)] {
        let proxied = Proxied::with_proxy(long_timeouts(), |proxy| proxy.delay(delay)).await;
        for token in ["token-1", "token-2", "token-3"] {
            proxied.add_and_cache(token).await;
            proxied.keys.revoke(token).await;
            changes_to(&proxied.directory, token, Refused).await;
        }
    }
}

/// A record from before its revocation that stayed in the cache would be accepted for good: the connection works, so
/// the lease never expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_used_during_its_revocation_is_refused_after_it() {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_timeouts());
    let directories = [keys.directory().await, keys.directory().await];
    let [first, second] = &directories;
    let used = join_all((0..8).map(async |task| {
        let tokens: Vec<_> = (0..25).map(|number| format!("token-{task}-{number}")).collect();
        for token in &tokens {
            keys.add(token, token).await;
            join!(use_token(first, token), keys.revoke(token), use_token(second, token));
            for directory in &directories {
                changes_to(directory, token, Refused).await;
            }
        }
        tokens
    }));
    for token in used.await.concat() {
        for directory in &directories {
            assert_eq!(use_token(directory, &token).await, Refused, "{token}");
        }
    }
}

/// The connection with the invalidations is held up, and the connection for lookups is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_only_invalidations_are_held_up_a_key_is_accepted_for_one_lease_at_most() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("invalidate");
    let keys = Keys::at(&server.url(), settings());
    keys.add("key", "token").await;
    let directory = Keys::at(&format!("redis://{}", proxy.address()), settings()).directory().await;
    becomes(&directory, "token", Accepted).await;
    keys.revoke("key").await;
    let revoked = Instant::now();
    while revoked.elapsed() < 2 * LEASE {
        let sent = revoked.elapsed();
        assert!(use_token(&directory, "token").await != Accepted || sent < LEASE, "{sent:?}");
        pause().await;
    }
    assert_eq!(proxy.held(), 1);
    becomes(&directory, "token", Refused).await;
}

/// A session without invalidations is as useless as one without lookups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_redis_closed_either_connection_a_revoked_key_is_not_accepted() {
    let proxied = Proxied::new(long_timeouts()).await;
    for (token, flag) in [("token-1", " flags=tB "), ("token-2", " flags=N ")] {
        proxied.add_and_cache(token).await;
        let clients = run(&proxied.server, "CLIENT LIST TYPE normal");
        let mut clients = clients.lines().filter(|client| client.ends_with(" resp=3"));
        let client = clients.find(|client| client.contains(flag)).expect("the connection");
        let id = client.split([' ', '=']).nth(1).expect("its id");
        assert_eq!(run(&proxied.server, &format!("CLIENT KILL ID {id}")), "1");

        proxied.keys.revoke(token).await;
        changes_to(&proxied.directory, token, Refused).await;
    }
}

/// This includes the task that supervises the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_has_to_run_for_a_lease_to_expire() {
    let server = RedisServer::start();
    let (keys, url) = (Keys::at(&server.url(), settings()), server.url());
    keys.add("key", "token").await;
    let (sender, receiver) = oneshot::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let blocked = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let directory = runtime.block_on(async {
            let directory = Keys::at(&url, settings()).directory().await;
            becomes(&directory, "token", Accepted).await;
            directory
        });
        // From here on, nothing runs on this runtime.
        sender.send(directory).ok().expect("the test waits for it");
        stopped.recv().expect_err("the sender is dropped");
    });
    let directory: RedisApiKeyDirectory = receiver.await.expect("a directory");
    keys.revoke("key").await;
    let revoked = Instant::now();
    loop {
        let sent = revoked.elapsed();
        // A lookup that the cache cannot serve never ends.
        let found = timeout(LEASE / 4, find(&directory, "token")).await;
        if !found.is_ok_and(|found| found.is_ok_and(|key| key.is_some())) {
            break;
        }
        assert!(sent < LEASE, "{sent:?}");
    }
    drop(stop);
    blocked.join().expect("the thread does not panic");
}
