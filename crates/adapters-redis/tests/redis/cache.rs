//! The contents of the cache, and their lifetimes.

use std::time::Duration;

use animal_store_adapters_redis::RedisSettings;
use futures_util::future::join_all;

use crate::{
    requests::{Accepted, Refused, becomes, changes_to, use_token},
    setup::{Proxied, long_timeouts, name},
};

/// Number of executions of each command except `PING`.
fn counts(proxied: &Proxied) -> String {
    let counts = proxied.server.command_counts();
    counts.lines().filter(|count| !count.starts_with("cmdstat_ping:")).collect::<Vec<_>>().join("\n")
}

/// Uses a token until it is cached: a lookup during the invalidation of an earlier change is not proxied.
async fn cache(proxied: &Proxied, token: &str) {
    loop {
        let before = counts(proxied);
        use_token(&proxied.directory, token).await;
        if counts(proxied) == before {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_token_sends_nothing_to_redis() {
    let proxied = Proxied::new(long_timeouts()).await;
    proxied.keys.add("key", "token").await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        cache(&proxied, token).await;
        let before = counts(&proxied);
        for _ in 0..1000 {
            assert_eq!(use_token(&proxied.directory, token).await, outcome);
        }
        assert_eq!(counts(&proxied), before, "{token}");
    }
}

/// An operator may change or delete a token without this program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_deleted_by_hand_is_refused() {
    let proxied = Proxied::new(long_timeouts()).await;
    let commands = ["DEL {}", "RENAME {} elsewhere", "EXPIRE {} 0", "HDEL {} id label scopes", "MOVE {} 1", "FLUSHALL"];
    for (number, words) in commands.into_iter().enumerate() {
        let token = format!("token-{number}");
        proxied.keys.add(&format!("key-{number}"), &token).await;
        cache(&proxied, &token).await;
        let words = words.replace("{}", &name("shop:", &token));
        proxied.server.command(&words.split(' ').collect::<Vec<_>>());
        changes_to(&proxied.directory, &token, Refused).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_tokens_do_not_evict_those_of_keys() {
    let proxied = Proxied::new(RedisSettings { max_known: 100, max_unknown: 100, ..long_timeouts() }).await;
    proxied.keys.add("key", "token").await;
    cache(&proxied, "token").await;
    let before = proxied.lookups();
    join_all((0..50).map(async |task| {
        for number in 0..100 {
            assert_eq!(use_token(&proxied.directory, &format!("invented-{task}-{number}")).await, Refused);
        }
    }))
    .await;
    assert_eq!(proxied.lookups() - before, 5000);

    let before = counts(&proxied);
    assert_eq!(use_token(&proxied.directory, "token").await, Accepted);
    assert_eq!(counts(&proxied), before, "it was evicted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_beyond_the_capacity_are_looked_up_and_not_cached() {
    const TOKENS: u32 = 100;
    let proxied = Proxied::new(RedisSettings { max_known: 10, max_unknown: 10, ..long_timeouts() }).await;
    for number in 0..TOKENS {
        proxied.keys.add(&format!("key-{number}"), &format!("known-{number}")).await;
    }
    for (kind, outcome) in [("known", Accepted), ("unknown", Refused)] {
        cache(&proxied, &format!("{kind}-0")).await;
        for _ in 0..3 {
            let before = proxied.lookups();
            for number in 0..TOKENS {
                assert_eq!(use_token(&proxied.directory, &format!("{kind}-{number}")).await, outcome);
            }
            let lookups = proxied.lookups() - before;
            assert!(lookups >= TOKENS - 10, "{kind}: only {lookups} of {TOKENS} were looked up");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_with_one_token_share_one_lookup() {
    let proxied = Proxied::with_proxy(long_timeouts(), |proxy| proxy.delay(Duration::from_millis(50))).await;
    proxied.keys.add("key", "token").await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        // An invalidation in flight would end the sharing of a lookup.
        becomes(&proxied.directory, "earlier", Refused).await;
        let before = proxied.lookups();
        let outcomes = join_all((0..100).map(|_| use_token(&proxied.directory, token))).await;
        assert_eq!(outcomes, vec![outcome; 100]);
        assert_eq!(proxied.lookups(), before + 1);
    }
}
