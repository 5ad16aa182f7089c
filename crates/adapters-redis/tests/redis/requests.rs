//! Requests with a token, and their outcomes over time.

use std::time::{Duration, Instant};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::ports::{Readiness, StoreFailure};

use crate::setup::{MARGIN, TEST_TIMEOUT, TIMEOUT, find};

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The key is valid: 200.
    Accepted,
    /// There is no such key: 401.
    Refused,
    /// The directory failed: 503.
    Failed,
}

pub(crate) use Outcome::{Accepted, Failed, Refused};

/// Uses a token. In every state of Redis, the request ends in time, and a failure is a 503.
pub(crate) async fn use_token(directory: &RedisApiKeyDirectory, token: &str) -> Outcome {
    let start = Instant::now();
    let outcome = match find(directory, token).await {
        Ok(Some(_)) => Accepted,
        Ok(None) => Refused,
        Err(StoreFailure::Unavailable(_) | StoreFailure::Timeout) => Failed,
        Err(error) => panic!("{token}: {error:?}"),
    };
    assert!(start.elapsed() < TIMEOUT + MARGIN, "{token}: {outcome:?} after {:?}", start.elapsed());
    outcome
}

/// Uses a token until it has this outcome. Until then, each request fails.
pub(crate) async fn becomes(directory: &RedisApiKeyDirectory, token: &str, expected: Outcome) {
    let start = Instant::now();
    loop {
        let outcome = use_token(directory, token).await;
        if outcome == expected {
            return;
        }
        assert_eq!(outcome, Failed, "{token} is not {expected:?}");
        assert!(start.elapsed() < TEST_TIMEOUT, "{token} does not become {expected:?}");
        pause().await;
    }
}

/// Uses a token until it has this outcome, whatever it was before, and then several more times.
///
/// On a connection that works the lease never expires: the outcome changes only if an invalidation is applied.
pub(crate) async fn changes_to(directory: &RedisApiKeyDirectory, token: &str, expected: Outcome) {
    wait_until(&format!("{token} becomes {expected:?}"), async || use_token(directory, token).await == expected).await;
    for _ in 0..10 {
        let outcome = use_token(directory, token).await;
        assert!(outcome == expected || outcome == Failed, "{token}: {outcome:?} after {expected:?}");
    }
}

/// Waits until a condition holds.
pub(crate) async fn wait_until(what: &str, condition: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < TEST_TIMEOUT, "{what}: not in time");
        pause().await;
    }
}

/// Pauses between two checks, so that polling does not delay the expected event.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Uses a token until this moment. Returns how long after `since` the last accepted request began, and the last
/// outcome.
pub(crate) async fn accepted_for(
    directory: &RedisApiKeyDirectory,
    token: &str,
    since: Instant,
    until: Instant,
) -> (Duration, Outcome) {
    let mut longest = Duration::ZERO;
    loop {
        let sent = Instant::now();
        let outcome = use_token(directory, token).await;
        if outcome == Accepted {
            longest = sent.saturating_duration_since(since);
        }
        if sent >= until {
            return (longest, outcome);
        }
        pause().await;
    }
}

pub(crate) async fn is_ready(directory: &RedisApiKeyDirectory) -> bool {
    directory.check().await.is_ok()
}

pub(crate) async fn becomes_ready(directory: &RedisApiKeyDirectory) {
    wait_until("the directory is ready", async || is_ready(directory).await).await;
}
