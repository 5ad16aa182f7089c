//! The contents of the cache, and their lifetimes.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisSettings};
use animal_store_app::test_support::join_tasks;
use animal_store_test_servers::RedisServer;
use futures_util::future::join_all;

use crate::{
    requests::{Accepted, Refused, becomes, changes_to, use_token},
    setup::{Keys, Proxied, calls, long_timeouts, name},
};

struct Cached {
    directory: Arc<RedisApiKeyDirectory>,
    keys: Keys,
    server: RedisServer,
}

impl Cached {
    async fn with(settings: RedisSettings) -> Self {
        let server = RedisServer::start();
        let keys = Keys::at(&server.url(), settings);
        Self { directory: Arc::new(keys.directory().await), keys, server }
    }

    async fn new() -> Self {
        Self::with(long_timeouts()).await
    }

    /// Number of executions of each command except `PING`.
    fn counts(&self) -> String {
        let counts = self.server.command_counts();
        counts.lines().filter(|count| !count.starts_with("cmdstat_ping:")).collect::<Vec<_>>().join("\n")
    }

    /// Uses a token until it is cached: a lookup during the invalidation of an earlier change is not cached.
    async fn cache(&self, token: &str) {
        loop {
            let before = self.counts();
            use_token(&self.directory, token).await;
            if self.counts() == before {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_token_sends_nothing_to_redis() {
    let cached = Cached::new().await;
    cached.keys.add("key", "token").await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        cached.cache(token).await;
        let before = cached.counts();
        for _ in 0..1000 {
            assert_eq!(use_token(&cached.directory, token).await, outcome);
        }
        assert_eq!(cached.counts(), before, "{token}");
    }
}

/// An operator may change or delete a token without this program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_deleted_by_hand_is_refused() {
    let cached = Cached::new().await;
    for (number, words) in [
        "DEL {}",
        "UNLINK {}",
        "RENAME {} elsewhere",
        "EXPIRE {} 0",
        "HDEL {} id label scopes",
        "MOVE {} 1",
        "FLUSHALL",
        "FLUSHDB",
    ]
    .into_iter()
    .enumerate()
    {
        let token = format!("token-{number}");
        cached.keys.add(&format!("key-{number}"), &token).await;
        cached.cache(&token).await;
        let words = words.replace("{}", &name("shop:", &token));
        cached.server.command(&words.split(' ').collect::<Vec<_>>());
        changes_to(&cached.directory, &token, Refused).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_token_is_accepted_after_it_was_added() {
    let cached = Cached::new().await;
    for number in 0..10 {
        let token = format!("token-{number}");
        cached.cache(&token).await;
        cached.keys.add(&format!("key-{number}"), &token).await;
        changes_to(&cached.directory, &token, Accepted).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_tokens_do_not_evict_those_of_keys() {
    let cached = Cached::with(RedisSettings { max_known: 100, max_unknown: 100, ..long_timeouts() }).await;
    cached.keys.add("key", "token").await;
    cached.cache("token").await;
    let before = calls(&cached.server, "hmget");
    join_tasks((0..50).map(|task| {
        let directory = Arc::clone(&cached.directory);
        async move {
            for number in 0..100 {
                assert_eq!(use_token(&directory, &format!("invented-{task}-{number}")).await, Refused);
            }
        }
    }))
    .await;
    assert_eq!(calls(&cached.server, "hmget") - before, 5000);

    let before = cached.counts();
    assert_eq!(use_token(&cached.directory, "token").await, Accepted);
    assert_eq!(cached.counts(), before, "it was evicted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_beyond_the_capacity_are_looked_up_and_not_cached() {
    const TOKENS: u32 = 100;
    let cached = Cached::with(RedisSettings { max_known: 10, max_unknown: 10, ..long_timeouts() }).await;
    for number in 0..TOKENS {
        cached.keys.add(&format!("key-{number}"), &format!("known-{number}")).await;
    }
    for (kind, outcome) in [("known", Accepted), ("unknown", Refused)] {
        cached.cache(&format!("{kind}-0")).await;
        for _ in 0..3 {
            let before = calls(&cached.server, "hmget");
            for number in 0..TOKENS {
                assert_eq!(use_token(&cached.directory, &format!("{kind}-{number}")).await, outcome);
            }
            let lookups = calls(&cached.server, "hmget") - before;
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
