use std::{sync::Arc, time::Instant};

use animal_store_app::{ApiKey, ApiKeyDigest, ports::ApiKeyDirectoryError};
use redis::{RedisError, pipe};
use thiserror::Error;

use crate::{
    connection::Connection,
    layout::Layout,
    token_hash::{KEY_FIELDS, KeyFields, TokenHashError, parse_token},
};

#[derive(Debug, Clone, Default)]
pub(crate) struct TokenRecord {
    /// The key that the token belongs to, if any.
    pub(crate) key: Option<Arc<ApiKey>>,
    /// When the token expires, if it does.
    pub(crate) expires: Option<Instant>,
}

/// The outcome of a lookup. It can be cloned for each request that waits for it.
pub(crate) type LookupOutcome = Result<TokenRecord, LookupError>;

/// A lookup failed, or a session.
#[derive(Debug, Clone, Error)]
pub(crate) enum LookupError {
    #[error("there is no connection to Redis")]
    NotConnected,
    #[error("the connection was closed")]
    Closed,
    #[error("Redis: {0}")]
    Redis(RedisError),
    #[error("Redis did not respond in time")]
    Timeout,
    #[error(transparent)]
    Corrupt(#[from] TokenHashError),
}

impl LookupError {
    /// Returns whether the connection was lost.
    pub(crate) fn is_disconnection(&self) -> bool {
        matches!(self, Self::Redis(error) if error.is_connection_dropped())
    }
}

/// Queries Redis for a token, within the timeout of the connection.
pub(crate) async fn find_token(mut connection: Connection, layout: &Layout, digest: &ApiKeyDigest) -> LookupOutcome {
    let name = layout.token(digest);
    // The time to live is counted from before the query: an entry expires early, never late.
    let sent = Instant::now();
    let mut query = pipe();
    query.cmd("HMGET").arg(&name).arg(&KEY_FIELDS).cmd("PTTL").arg(&name);
    let (fields, pttl): (KeyFields, i64) = query.query_async(&mut connection).await?;
    let token = parse_token(fields, pttl)?;
    let known =
        |(key, ttl): (_, Option<_>)| TokenRecord { key: Some(Arc::new(key)), expires: ttl.map(|ttl| sent + ttl) };
    Ok(token.map(known).unwrap_or_default())
}

impl From<RedisError> for LookupError {
    fn from(error: RedisError) -> Self {
        match TokenHashError::from_redis(&error) {
            Some(corrupt) => Self::Corrupt(corrupt),
            None if error.is_timeout() => Self::Timeout,
            None => Self::Redis(error),
        }
    }
}

impl From<LookupError> for ApiKeyDirectoryError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotConnected | LookupError::Closed | LookupError::Redis(_) => Self::Unavailable(error.into()),
            LookupError::Timeout => Self::Timeout,
            LookupError::Corrupt(error) => Self::Corrupt(error.into()),
        }
    }
}
