//! The contents of the cache, and their lifetimes.

use crate::prelude::*;

#[tokio::test]
async fn a_cached_token_sends_nothing_to_redis() {
    let proxied = Proxied::new(long_timeouts()).await;
    proxied.add_and_cache("token").await;
    proxied.becomes_cached("invented", Refused).await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        let count = |result| proxied.metric(&format!("cache_lookups_total{{result=\"{result}\"}}"));
        let hits = count("hit");
        let misses = count("miss");
        let lookups = proxied.lookups();
        for _ in 0..1000 {
            assert_eq!(use_token(&proxied.directory, token).await, outcome);
        }
        assert_eq!(count("hit"), hits + 1000, "{token}");
        assert_eq!(count("miss"), misses, "{token}");
        assert_eq!(proxied.lookups(), lookups, "{token}");
    }
    let in_memory = |token| find_in_memory(&proxied.directory, token);
    assert_eq!(["token", "invented"].map(in_memory), [true, false]);
    let lookups = proxied.lookups();
    assert!(!in_memory("other"));
    assert_eq!(proxied.lookups(), lookups, "it starts no lookup");
}

/// An operator may change or delete a token without this program.
#[tokio::test]
async fn a_token_that_is_deleted_by_hand_is_refused() {
    let proxied = Proxied::new(long_timeouts()).await;
    let commands = [
        "DEL {}",
        "RENAME {} elsewhere",
        "PEXPIRE {} 1",
        "HDEL {} id label scopes",
        "MOVE {} 1",
        "FLUSHALL",
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let token = format!("token-{number}");
        proxied.add_and_cache(&token).await;
        proxied.server.run(&command.replace("{}", &name(&token)));
        changes_to(&proxied.directory, &token, Refused).await;
    }
}

/// Redis sends no invalidation: the cache holds the expiry.
#[tokio::test]
async fn a_cached_token_expires_in_time_without_redis() {
    // A busy machine uses a token within the lifetime. The clocks of Redis and of this process may differ a little.
    let lifetime = Duration::from_secs(15);
    let clock = Duration::from_millis(50);
    let proxied = Proxied::new(long_lease()).await;
    // An invalidation of this change that arrives late would remove the record from the cache.
    proxied.becomes_cached("token", Refused).await;
    let earliest = Instant::now() + lifetime;
    proxied
        .keys
        .change(add("key", "token", Some(lifetime)))
        .await;
    let latest = Instant::now() + lifetime;
    proxied.becomes_cached("token", Accepted).await;
    proxied.proxy.freeze();
    let mut used = Instant::now();
    while cached(&proxied.directory, "token") == Some(Accepted) {
        assert!(used < latest + clock, "it is accepted too long");
        pause().await;
        used = Instant::now();
    }
    assert!(Instant::now() + clock > earliest, "it expired early");
    assert_eq!(use_token(&proxied.directory, "token").await, Failed);
}

#[tokio::test]
async fn invented_tokens_do_not_evict_those_of_keys() {
    let proxied = Proxied::new(RedisSettings {
        max_known: 10,
        max_unknown: 10,
        ..long_timeouts()
    })
    .await;
    proxied.add_and_cache("token").await;
    let before = proxied.lookups();
    // The cache prefers a token that was used again.
    for invented in (0..500).map(|number| format!("invented-{number}")) {
        for _ in 0..2 {
            assert_eq!(use_token(&proxied.directory, &invented).await, Refused);
        }
    }
    assert_eq!(proxied.lookups() - before, 500);
    assert_eq!(
        cached(&proxied.directory, "token"),
        Some(Accepted),
        "it was evicted"
    );
}

#[tokio::test]
async fn tokens_beyond_the_capacity_are_looked_up_and_not_cached() {
    let proxied = Proxied::new(RedisSettings {
        max_known: 10,
        max_unknown: 10,
        ..long_timeouts()
    })
    .await;
    for number in 0..50 {
        proxied
            .keys
            .add(&format!("key-{number}"), &format!("known-{number}"))
            .await;
    }
    for (kind, outcome) in [("known", Accepted), ("unknown", Refused)] {
        let before = proxied.lookups();
        for number in (0..50).chain(0..50) {
            assert_eq!(
                use_token(&proxied.directory, &format!("{kind}-{number}")).await,
                outcome
            );
        }
        let lookups = proxied.lookups() - before;
        assert!(
            lookups >= 90,
            "{kind}: only {lookups} of 100 were looked up"
        );
    }
}

#[tokio::test]
async fn concurrent_requests_with_one_token_share_one_lookup() {
    let mut proxied = Proxied::new(long_timeouts()).await;
    let directory = Arc::clone(&proxied.directory);
    proxied.keys.add("key", "token").await;
    becomes(&directory, "earlier", Refused).await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        let before = proxied.lookups();
        proxied.proxy.freeze();
        let mut requests = join_all([token; 100].map(|token| use_token(&directory, token)));
        assert!((&mut requests).now_or_never().is_none());
        proxied.proxy.heal();
        assert_eq!(requests.await, [outcome; 100]);
        assert_eq!(proxied.lookups(), before + 1);
    }
}
