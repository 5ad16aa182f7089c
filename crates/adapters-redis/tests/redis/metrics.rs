//! Each metric of API keys, and an event that changes it.

use animal_store_adapters_redis::RedisSettings;
use futures_util::{FutureExt, future::join_all};

use crate::{
    requests::{Accepted, Failed, Refused, becomes, becomes_ready, use_token, wait_until},
    setup::{Proxied, find, long_lease, long_timeouts, metric, name},
};

const HITS: &str = r#"cache_lookups_total{result="hit"}"#;
const MISSES: &str = r#"cache_lookups_total{result="miss"}"#;

fn failures(proxied: &Proxied, reason: &str) -> u64 {
    proxied.metric(&format!("lookup_failures_total{{reason=\"{reason}\"}}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_is_a_hit_if_its_token_is_cached_and_otherwise_a_miss() {
    let proxied = Proxied::new(long_timeouts()).await;
    proxied.add_and_cache("key", "token").await;
    let before = [HITS, MISSES].map(|series| proxied.metric(series));
    for _ in 0..10 {
        assert_eq!(use_token(&proxied.directory, "token").await, Accepted);
    }
    assert_eq!(use_token(&proxied.directory, "invented").await, Refused);

    let after = [HITS, MISSES].map(|series| proxied.metric(series));
    assert_eq!(after, [before[0] + 10, before[1] + 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookups_over_a_frozen_connection_count_against_their_maximum_until_they_fail() {
    let few = RedisSettings { max_lookups: 3, ..long_lease() };
    let proxied = Proxied::new(few).await;
    proxied.proxy.freeze();

    let mut lookups = join_all((0..4).map(|number| {
        let directory = &proxied.directory;
        async move { find(directory, &format!("token-{number}")).await.is_err() }
    }));
    assert!((&mut lookups).now_or_never().is_none());
    assert_eq!(failures(&proxied, "overloaded"), 1);
    assert_eq!(lookups.await, [true; 4]);
    assert_eq!((failures(&proxied, "timeout"), failures(&proxied, "unavailable")), (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_token_is_a_failure() {
    let proxied = Proxied::new(long_timeouts()).await;
    proxied.server.command(&["SET", &name("shop:", "token"), "x"]);
    assert!(find(&proxied.directory, "token").await.is_err());
    assert_eq!(failures(&proxied, "corrupt"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_ends_the_session_and_the_lease_until_it_is_started_again() {
    let mut proxied = Proxied::new(long_lease()).await;
    becomes_ready(&proxied.directory).await;
    let lease: f64 = metric(&proxied.metrics, "lease_remaining_seconds").parse().expect("a number");
    assert!(lease > 0.0 && lease <= long_lease().lease.as_secs_f64(), "{lease}");
    assert_eq!(proxied.metric("redis_connected"), 1);

    proxied.server.stop();
    wait_until("the session ends", async || proxied.metric("redis_connected") == 0).await;
    assert_eq!(metric(&proxied.metrics, "lease_remaining_seconds"), "0.0");
    assert_eq!(use_token(&proxied.directory, "token").await, Failed);
    assert_eq!(failures(&proxied, "unavailable"), 1);

    proxied.server.start_again();
    becomes(&proxied.directory, "token", Refused).await;
    assert_eq!(proxied.metric("redis_connected"), 1);
}
