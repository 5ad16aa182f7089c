//! What the last check of the file found, and how long it is trusted.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use animal_store_app::{ApiKey, ApiKeyDigest, ports::StoreFailure};

use super::tokens::TokenRow;
use crate::time::milliseconds;

/// How long tokens are trusted after the beginning of a check: the longest time for which a revoked key is accepted.
const TRUST: Duration = Duration::from_millis(100);

/// The state of the directory, which each check replaces.
pub(super) struct Checked {
    pub(super) tokens: Arc<Tokens>,
    trusted_until: Instant,
    /// Why the last check failed.
    pub(super) failure: Option<String>,
}

/// The tokens that were valid when they were read.
#[derive(Default)]
pub(super) struct Tokens(HashMap<ApiKeyDigest, Token>);

struct Token {
    /// The key, or the reason why it is not valid.
    key: Result<Arc<ApiKey>, String>,
    /// In milliseconds since 1970.
    expires_at: Option<i64>,
}

impl Checked {
    /// Creates the state before the first check: nothing is trusted.
    pub(super) fn new() -> Self {
        Self { tokens: Arc::default(), trusted_until: Instant::now(), failure: None }
    }

    /// Applies a check that began at this moment. `tokens`: those that it read, if they have changed.
    pub(super) fn succeeded(&mut self, began: Instant, tokens: Option<Tokens>) {
        if let Some(tokens) = tokens {
            self.tokens = Arc::new(tokens);
        }
        self.trusted_until = began + TRUST;
        self.failure = None;
    }

    pub(super) fn is_trusted(&self, now: Instant) -> bool {
        now < self.trusted_until
    }
}

impl Tokens {
    pub(super) fn from_rows(rows: &[TokenRow]) -> Self {
        Self(rows.iter().filter_map(|row| Some((row.digest()?, Token::from_row(row)))).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the key of a token that has not expired.
    pub(super) fn find(&self, digest: &ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let Some(Token { key, expires_at }) = self.0.get(digest) else { return Ok(None) };
        if expires_at.is_some_and(|expires_at| expires_at <= milliseconds(SystemTime::now())) {
            return Ok(None);
        }
        match key {
            Ok(key) => Ok(Some(Arc::clone(key))),
            Err(reason) => Err(StoreFailure::Corrupt(reason.clone().into())),
        }
    }
}

impl Token {
    fn from_row(row: &TokenRow) -> Self {
        let key = row.key().map(Arc::new).map_err(|error| error.to_string());
        Self { key, expires_at: row.expires_at }
    }
}
