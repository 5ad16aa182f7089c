//! What becomes of those who use a token, and for how long.

use std::time::{Duration, Instant};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::ports::{ApiKeyDirectoryError, Readiness};

use crate::keys::{MARGIN, PATIENCE, REPORTED, TIMEOUT, find};

/// What comes of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    /// There is no such key: 401.
    Refused,
    /// Nobody knows whether there is: 503.
    Failed,
}

pub(crate) use Outcome::{Accepted, Failed, Refused};

/// Uses a token. Whatever state Redis is in, that ends in time, and fails in no other way than 503.
pub(crate) async fn ask(directory: &RedisApiKeyDirectory, token: &str) -> Outcome {
    let start = Instant::now();
    let outcome = match find(directory, token).await {
        Ok(Some(_)) => Accepted,
        Ok(None) => Refused,
        Err(ApiKeyDirectoryError::Unavailable(_) | ApiKeyDirectoryError::Timeout) => Failed,
        Err(error) => panic!("{token}: {error:?}"),
    };
    assert!(start.elapsed() < TIMEOUT + MARGIN, "{token}: {outcome:?} after {:?}", start.elapsed());
    outcome
}

/// Uses a token until this comes of it; before, it may fail, and nothing else.
pub(crate) async fn comes_to(directory: &RedisApiKeyDirectory, token: &str, expected: Outcome) {
    let start = Instant::now();
    loop {
        let outcome = ask(directory, token).await;
        if outcome == expected {
            return;
        }
        assert_eq!(outcome, Failed, "{token} is not {expected:?}");
        assert!(start.elapsed() < PATIENCE, "{token} does not come to {expected:?}");
        a_moment().await;
    }
}

/// Between two looks at something that is waited for, so that looking does not keep it from happening.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Time since a moment, without what a stall of the machine took away in one piece: such a stall puts off the task that
/// measures and the one that is measured alike.
pub(crate) struct Awake {
    last: Instant,
    counted: Duration,
}

impl Awake {
    pub(crate) fn since(moment: Instant) -> Self {
        Self { last: moment, counted: Duration::ZERO }
    }

    /// Has to be called over and over.
    pub(crate) fn elapsed(&mut self) -> Duration {
        let now = Instant::now();
        self.counted += now.saturating_duration_since(self.last).min(REPORTED / 5);
        self.last = now;
        self.counted
    }
}

/// A token comes to this as soon as Redis has reported what was changed.
pub(crate) async fn soon_comes_to(directory: &RedisApiKeyDirectory, token: &str, expected: Outcome) {
    let mut awake = Awake::since(Instant::now());
    loop {
        let asked = awake.elapsed();
        let outcome = ask(directory, token).await;
        if outcome == expected {
            return;
        }
        assert!(asked < REPORTED, "{token}: {outcome:?} after {asked:?}");
        a_moment().await;
    }
}

/// How long after this moment a token was accepted for the last time. It is used for somewhat longer than it may be.
pub(crate) async fn accepted_after(directory: &RedisApiKeyDirectory, token: &str, revoked: Instant) -> Duration {
    let mut awake = Awake::since(revoked);
    let mut longest = Duration::ZERO;
    loop {
        let asked = awake.elapsed();
        if ask(directory, token).await == Accepted {
            longest = asked;
        }
        if asked > 3 * REPORTED {
            return longest;
        }
        a_moment().await;
    }
}

/// Uses a token until this moment. Returns how long after `since` the last time was that it was accepted, and what
/// came of it in the end.
pub(crate) async fn accepted_for(
    directory: &RedisApiKeyDirectory,
    token: &str,
    since: Instant,
    until: Instant,
) -> (Duration, Outcome) {
    let mut longest = Duration::ZERO;
    loop {
        let asked = Instant::now();
        let outcome = ask(directory, token).await;
        if outcome == Accepted {
            longest = asked.saturating_duration_since(since);
        }
        if asked >= until {
            return (longest, outcome);
        }
        a_moment().await;
    }
}

pub(crate) async fn is_ready(directory: &RedisApiKeyDirectory) -> bool {
    directory.check().await.is_ok()
}
