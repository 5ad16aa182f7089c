//! A directory while its connections or its Redis fail.

use std::time::{Duration, Instant};

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::ports::StoreFailure;
use animal_store_test_servers::FaultProxy;

use crate::{
    requests::{Accepted, Failed, Refused, becomes, becomes_ready, changes_to, is_ready, pause, use_token, wait_until},
    setup::{
        LEASE, MARGIN, Proxied, TEST_TIMEOUT, TIMEOUT, find, invalidations_client, is_cached, long_lease,
        long_timeouts, settings,
    },
};

/// Adds a cached key and a key that is not cached. A third token, `invented`, belongs to no key.
async fn with_keys(settings: RedisSettings) -> Proxied {
    let proxied = Proxied::new(settings).await;
    proxied.keys.add("unused", "unused").await;
    proxied.add_and_cache("used", "used").await;
    proxied
}

/// While Redis does not respond: a cached token is accepted for one lease at most, every other request fails.
async fn only_cached_tokens_are_accepted(proxied: &Proxied, since: Instant) {
    while since.elapsed() < 2 * LEASE {
        for token in ["used", "unused", "invented"] {
            let sent = Instant::now();
            let outcome = use_token(&proxied.directory, token).await;
            if token == "used" && sent < since + LEASE {
                assert_ne!(outcome, Refused, "{token}");
            } else {
                assert_eq!(outcome, Failed, "{token} after {:?}", sent - since);
            }
        }
        pause().await;
    }
    assert!(!is_ready(&proxied.directory).await);
}

async fn recovers(proxied: &Proxied) {
    for (token, outcome) in [("used", Accepted), ("unused", Accepted), ("invented", Refused)] {
        becomes(&proxied.directory, token, outcome).await;
    }
    becomes_ready(&proxied.directory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_are_replaced() {
    let proxied = with_keys(settings("shop:")).await;
    for _ in 0..3 {
        let before = invalidations_client(&proxied.server).expect("a session");
        proxied.proxy.cut();
        wait_until("a new session", async || {
            invalidations_client(&proxied.server).is_some_and(|client| client != before)
        })
        .await;
        recovers(&proxied).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_does_not_respond_only_cached_tokens_are_accepted_for_one_lease() {
    let faults: [fn(&Proxied); 3] =
        [|proxied| proxied.proxy.freeze(), |proxied| proxied.proxy.delay(3 * LEASE), |proxied| proxied.server.pause()];
    for fault in faults {
        let mut proxied = with_keys(settings("shop:")).await;
        fault(&proxied);
        only_cached_tokens_are_accepted(&proxied, Instant::now()).await;

        proxied.proxy.heal();
        proxied.server.resume();
        recovers(&proxied).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_connection_every_request_fails_until_there_is_one() {
    let mut proxied = with_keys(settings("shop:")).await;
    proxied.proxy.refuse();
    only_cached_tokens_are_accepted(&proxied, Instant::now()).await;
    fails_without_a_lookup(&proxied, "used").await;

    proxied.proxy.heal();
    recovers(&proxied).await;
}

/// If the next `PING` were counted from the response to the last one, the lease would expire for a fifth of its length.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_in_time_if_a_response_takes_a_third_of_it() {
    let lease = Duration::from_millis(600);
    let proxied = Proxied::new(RedisSettings { lease, ..long_timeouts() }).await;
    proxied.add_and_cache("key", "token").await;
    proxied.proxy.delay(lease * 7 / 40);
    let (start, mut since) = (Instant::now(), Instant::now());
    // A busy machine may delay a renewal. Then it starts again.
    while since.elapsed() < 2 * lease {
        if !is_cached(&proxied.directory, "token") || !is_ready(&proxied.directory).await {
            since = Instant::now();
        }
        pause().await;
        assert!(start.elapsed() < TEST_TIMEOUT, "the lease expires again and again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_its_data_accepts_no_key() {
    let mut proxied = with_keys(long_lease()).await;
    proxied.server.stop();
    // The lease does not expire within this test.
    changes_to(&proxied.directory, "used", Failed).await;
    assert_eq!(use_token(&proxied.directory, "unused").await, Failed);
    assert_eq!(use_token(&proxied.directory, "invented").await, Failed);

    proxied.server.start_again();
    for token in ["used", "unused", "invented"] {
        becomes(&proxied.directory, token, Refused).await;
    }
    proxied.add_and_cache("another", "another").await;
}

/// Before the first session a request does not wait for one.
async fn fails_without_a_lookup(proxied: &Proxied, token: &str) {
    let outcome = find(&proxied.directory, token).await;
    assert!(matches!(outcome, Err(StoreFailure::Unavailable(_))), "{token}: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_starts_without_a_connection_fails_and_recovers() {
    for prepare in [FaultProxy::refuse, |proxy: &mut FaultProxy| proxy.freeze()] as [fn(&mut _); 2] {
        let start = Instant::now();
        let mut proxied = Proxied::with_proxy(settings("shop:"), prepare).await;
        assert!(start.elapsed() < 2 * TIMEOUT + MARGIN, "{:?}", start.elapsed());
        proxied.keys.add("key", "token").await;
        assert!(!is_ready(&proxied.directory).await);
        for token in ["token", "invented"] {
            fails_without_a_lookup(&proxied, token).await;
        }

        proxied.proxy.heal();
        becomes(&proxied.directory, "token", Accepted).await;
        becomes(&proxied.directory, "invented", Refused).await;
        becomes_ready(&proxied.directory).await;
    }
}
