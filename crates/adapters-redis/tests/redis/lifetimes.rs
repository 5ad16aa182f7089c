//! Tokens that expire.

use std::time::{Duration, Instant};

use animal_store_adapters_redis::RedisSettings;

use crate::{
    requests::{Accepted, Failed, Refused, accepted_for, pause, use_token, wait_until},
    setup::{self, Proxied, TEST_TIMEOUT, is_cached, name, settings},
};

/// A busy machine uses a token within this time.
const LIFETIME: Duration = Duration::from_secs(5);
/// Maximum drift between the clocks of Redis and of this process within one lifetime.
const CLOCK: Duration = Duration::from_millis(50);

/// Adds a token with [`LIFETIME`]. Returns a moment after which it has expired.
async fn add(proxied: &Proxied) -> Instant {
    proxied.keys.change(setup::add("key", "token", Some(LIFETIME))).await;
    Instant::now() + LIFETIME
}

/// Uses a token until it is refused, which is neither too early nor too late.
async fn expires_between(proxied: &Proxied, earliest: Instant, latest: Instant) {
    loop {
        let sent = Instant::now();
        match use_token(&proxied.directory, "token").await {
            Accepted => assert!(sent < latest + CLOCK, "it is accepted {:?} too long", sent - latest),
            Refused => return assert!(Instant::now() + CLOCK > earliest, "it expired early"),
            Failed => {}
        }
        pause().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expiry_that_is_set_by_hand_applies_to_a_cached_token() {
    let proxied = Proxied::new(settings("shop:")).await;
    proxied.add_and_cache("key", "token").await;
    let start = Instant::now();
    proxied.server.command(&["PEXPIRE", &name("shop:", "token"), &LIFETIME.as_millis().to_string()]);
    let expired = Instant::now() + LIFETIME;
    expires_between(&proxied, start + LIFETIME, expired).await;
}

/// Redis sends no invalidation: the cache holds the expiry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_token_expires_in_time_without_redis() {
    let proxied = Proxied::new(RedisSettings { lease: 2 * TEST_TIMEOUT, ..settings("shop:") }).await;
    let start = Instant::now();
    let expired = add(&proxied).await;
    wait_until("the token is cached", async || is_cached(&proxied.directory, "token")).await;
    proxied.proxy.freeze();
    let (accepted, last) = accepted_for(&proxied.directory, "token", start, expired + LIFETIME / 4).await;
    assert_eq!(last, Failed);
    assert!(accepted < expired - start + CLOCK, "{accepted:?} of {:?}", expired - start);
}
