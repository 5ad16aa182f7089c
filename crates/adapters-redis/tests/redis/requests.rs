//! Requests with a token, and their outcomes over time.

use animal_store_app::{ApiKeyDigest, ports::Readiness};

use crate::prelude::*;

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

fn outcome(found: Result<Option<Arc<ApiKey>>, StoreFailure>) -> Outcome {
    match found {
        Ok(Some(_)) => Accepted,
        Ok(None) => Refused,
        Err(StoreFailure::Unavailable(_) | StoreFailure::Timeout) => Failed,
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) async fn use_token(directory: &RedisApiKeyDirectory, token: &str) -> Outcome {
    outcome(find(directory, token).await)
}

/// Returns the outcome in the cache. If it has none, this starts a lookup.
pub(crate) fn cached(directory: &RedisApiKeyDirectory, token: &str) -> Option<Outcome> {
    find(directory, token).now_or_never().map(outcome)
}

/// Whether the directory accepts a token without a lookup.
pub(crate) fn find_in_memory(directory: &RedisApiKeyDirectory, token: &str) -> bool {
    let digest = ApiKeyDigest::of(&token.into());
    directory.find_in_memory(&digest).is_some()
}

/// Uses a token until it has this outcome. Until then, each request fails.
pub(crate) async fn becomes(directory: &RedisApiKeyDirectory, token: &str, expected: Outcome) {
    wait_until(&format!("{token} becomes {expected:?}"), async || {
        let outcome = use_token(directory, token).await;
        assert!(
            outcome == expected || outcome == Failed,
            "{token}: {outcome:?} before {expected:?}"
        );
        outcome == expected
    })
    .await;
}

/// Uses a token until it has this outcome, whatever it was before, and then several more times.
///
/// On a connection that works the lease never expires: the outcome changes only if an invalidation is applied.
pub(crate) async fn changes_to(directory: &RedisApiKeyDirectory, token: &str, expected: Outcome) {
    wait_until(&format!("{token} becomes {expected:?}"), async || {
        use_token(directory, token).await == expected
    })
    .await;
    for _ in 0..10 {
        let outcome = use_token(directory, token).await;
        assert!(
            outcome == expected || outcome == Failed,
            "{token}: {outcome:?} after {expected:?}"
        );
    }
}

/// Pauses between two checks, so that polling does not delay the expected event.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(crate) async fn is_ready(directory: &RedisApiKeyDirectory) -> bool {
    directory.check().await.is_ok()
}
