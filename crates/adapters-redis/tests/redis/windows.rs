//! How long a revoked key may still pass, in each state of the link. Time begins when the store has acknowledged the
//! revocation.

use std::{
    thread,
    time::{Duration, Instant},
};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_test_servers::{FaultProxy, RedisServer};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    keys::{Keys, LEASE, Linked, PATIENCE, REPORTED, find, report, settings},
    uses::{Accepted, Failed, Refused, accepted_after, accepted_for, ask, comes_to},
};

/// What a busy machine may add to a lease.
const LATE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_healthy_link_a_revoked_key_does_not_pass_after_100_ms() {
    let linked = Linked::new().await;
    let mut windows = revocations(&linked, 25).await;
    assert!(report("healthy", &mut windows) < REPORTED);
}

/// How long each of so many keys passes after its revocation.
async fn revocations(linked: &Linked, count: usize) -> Vec<Duration> {
    let mut windows = Vec::new();
    for number in 0..count {
        let token = format!("token-{number}");
        let key = linked.add_and_cache(&format!("key-{number}"), &token).await;
        linked.keys.revoke(&key).await;
        let revoked = Instant::now();
        windows.push(accepted_after(&linked.directory, &token, revoked).await);
        comes_to(&linked.directory, &token, Refused).await;
    }
    windows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_frozen_link_a_revoked_key_passes_for_a_lease_at_the_most() {
    // At several moments between two signs of life.
    let rounds = [0, 90, 180, 270].map(Duration::from_millis).map(|wait| async move {
        let linked = Linked::new().await;
        let key = linked.add_and_cache("key", "token").await;
        accepted_for(&linked.directory, "token", Instant::now(), Instant::now() + wait).await;
        linked.link.freeze();
        passes_for_a_lease_at_the_most(linked, key).await
    });
    let mut windows = futures_util::future::join_all(rounds).await;
    report("frozen", &mut windows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_link_that_holds_a_report_up_a_revoked_key_passes_for_a_lease_at_the_most() {
    let linked = Linked::new().await;
    let key = linked.add_and_cache("key", "token").await;
    linked.link.delay(LEASE);
    passes_for_a_lease_at_the_most(linked, key).await;
}

/// The connection that carries reports stands still, the other one does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_reports_alone_are_held_up_a_revoked_key_passes_for_a_lease_at_the_most() {
    let server = RedisServer::start();
    let link = FaultProxy::to(server.port());
    link.hold("invalidate");
    let keys = Keys::at(&server.url(), settings("shop:"));
    let key = keys.add("key", "token").await;
    let directory = Keys::at(&format!("redis://{}", link.address()), settings("shop:")).directory().await;
    comes_to(&directory, "token", Accepted).await;
    keys.revoke(&key).await;
    let revoked = Instant::now();
    let (window, _) = accepted_for(&directory, "token", revoked, revoked + 2 * LEASE).await;
    report("reports held up", &mut [window]);
    assert_eq!(link.held(), 1);
    assert!(window < LEASE + LATE, "{window:?}");
    comes_to(&directory, "token", Refused).await;
}

async fn passes_for_a_lease_at_the_most(mut linked: Linked, key: animal_store_app::ApiKey) -> Duration {
    linked.keys.revoke(&key).await;
    let revoked = Instant::now();
    let (window, last) = accepted_for(&linked.directory, "token", revoked, revoked + 3 * LEASE).await;
    assert!(window < LEASE + LATE, "{window:?}");
    assert_eq!(last, Failed);

    linked.link.heal();
    comes_to(&linked.directory, "token", Refused).await;
    window
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_link_that_was_cut_a_revoked_key_does_not_pass_after_100_ms() {
    let mut linked = Linked::new().await;
    let mut windows = Vec::new();
    for number in 0..3 {
        let token = format!("token-{number}");
        let key = linked.add_and_cache(&format!("key-{number}"), &token).await;
        linked.link.refuse();
        linked.keys.revoke(&key).await;
        let revoked = Instant::now();
        windows.push(accepted_after(&linked.directory, &token, revoked).await);
        assert_eq!(ask(&linked.directory, &token).await, Failed);

        linked.link.heal();
        comes_to(&linked.directory, &token, Refused).await;
    }
    assert!(report("cut", &mut windows) < REPORTED);
}

/// Either connection: one that reports no changes is as bad as none, and so is one that answers nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_redis_closes_either_connection_a_revoked_key_does_not_pass_after_100_ms() {
    let linked = Linked::new().await;
    let mut windows = Vec::new();
    for number in 0..6 {
        let token = format!("token-{number}");
        let key = linked.add_and_cache(&format!("key-{number}"), &token).await;
        let reports = number % 2 == 0;
        let clients = linked.server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
        let mut clients = clients.lines().filter(|client| client.ends_with(" resp=3"));
        let client = clients.find(|client| client.contains(" flags=tB ") == reports).expect("the connection");
        let id = client.split([' ', '=']).nth(1).expect("its number");
        assert_eq!(linked.server.command(&["CLIENT", "KILL", "ID", id]), "1");

        linked.keys.revoke(&key).await;
        let revoked = Instant::now();
        let window = accepted_after(&linked.directory, &token, revoked).await;
        windows.push(window);
        comes_to(&linked.directory, &token, Refused).await;
    }
    assert!(report("closed", &mut windows) < REPORTED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_slow_link_a_revoked_key_passes_for_as_long_as_the_link_is_slow() {
    let delay = Duration::from_millis(50);
    let linked = Linked::with(settings("shop:"), |link| link.delay(delay)).await;
    let mut windows = revocations(&linked, 5).await;
    // One message may have to wait for another one.
    assert!(report("slow", &mut windows) < 2 * delay + LATE);
}

/// The store waits for the server, so the revocation is acknowledged when the server has gone on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_server_stands_still_a_key_passes_for_a_lease_at_the_most_and_after_a_revocation_not_at_all() {
    let linked = Linked::new().await;
    let key = linked.add_and_cache("key", "token").await;
    let Linked { directory, keys, link: _link, server } = linked;
    server.pause();
    let paused = Instant::now();
    let revocation = tokio::spawn(async move {
        keys.revoke(&key).await;
        Instant::now()
    });
    let (window, last) = accepted_for(&directory, "token", paused, paused + 2 * LEASE).await;
    report("paused", &mut [window]);
    assert!(window < LEASE + LATE, "{window:?}");
    assert_eq!(last, Failed);

    server.resume();
    let revoked = revocation.await.expect("the revocation");
    let window = accepted_after(&directory, "token", revoked).await;
    assert!(window < REPORTED, "{window:?}");
    comes_to(&directory, "token", Refused).await;
}

/// Not even the task that looks after the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_has_to_be_awake_for_a_lease_to_end() {
    let linked = Linked::new().await;
    let key = linked.keys.add("key", "token").await;
    let url = linked.server.url();
    let (sender, receiver) = oneshot::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let asleep = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let directory = runtime.block_on(async {
            let directory = Keys::at(&url, settings("shop:")).directory().await;
            comes_to(&directory, "token", Accepted).await;
            directory
        });
        // From here on, nothing runs on it.
        sender.send(directory).ok().expect("somebody waits");
        stopped.recv().expect_err("it ends");
    });
    let directory: RedisApiKeyDirectory = receiver.await.expect("a directory");
    let found = find(&directory, "token").await;
    assert!(found.expect("it is in the cache").is_some());

    linked.keys.revoke(&key).await;
    let revoked = Instant::now();
    let mut window = Duration::ZERO;
    // The first look-up that is not answered from the cache is never answered.
    while timeout(LATE, find(&directory, "token")).await.is_ok_and(|found| found.is_ok_and(|key| key.is_some())) {
        window = revoked.elapsed();
        assert!(window < PATIENCE, "it passes for ever");
    }
    report("asleep", &mut [window]);
    assert!(window < LEASE + LATE, "{window:?}");
    drop(stop);
    asleep.join().expect("it ends");
}
