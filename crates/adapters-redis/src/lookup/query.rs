use std::{sync::Arc, time::Instant};

use animal_store_app::{ApiKey, ApiKeyDigest, ports::ApiKeyDirectoryError};
use redis::{RedisError, aio::MultiplexedConnection, pipe};
use thiserror::Error;

use crate::{
    layout::Layout,
    token_hash::{KEY_FIELDS, KeyFields, TokenHashError, parse_token},
};

/// The result of looking a token up.
#[derive(Debug, Clone)]
pub(crate) enum TokenRecord {
    /// The token belongs to this key until it expires.
    Known { key: Arc<ApiKey>, expires: Option<Instant> },
    /// The token belongs to no key.
    Unknown,
}

impl TokenRecord {
    pub(crate) fn into_key(self) -> Option<Arc<ApiKey>> {
        match self {
            Self::Known { key, .. } => Some(key),
            Self::Unknown => None,
        }
    }
}

/// The outcome of a lookup. It can be cloned for each request that waits for it.
pub(crate) type LookupOutcome = Result<TokenRecord, LookupError>;

#[derive(Debug, Clone, Error)]
pub(crate) enum LookupError {
    #[error("there is no connection to Redis")]
    NotConnected,
    #[error("Redis: {0}")]
    Redis(RedisError),
    #[error("Redis did not respond in time")]
    Timeout,
    #[error(transparent)]
    Corrupt(#[from] TokenHashError),
}

/// Queries Redis for a token, within the timeout of the connection.
pub(crate) async fn find_token(
    mut connection: MultiplexedConnection,
    layout: &Layout,
    digest: &ApiKeyDigest,
) -> LookupOutcome {
    let name = layout.token(digest);
    // The time to live is counted from before the query: an entry expires early, never late.
    let sent = Instant::now();
    let mut query = pipe();
    query.cmd("HMGET").arg(&name).arg(&KEY_FIELDS).cmd("PTTL").arg(&name);
    let (fields, pttl): (KeyFields, i64) = query.query_async(&mut connection).await?;
    Ok(match parse_token(fields, pttl)? {
        Some((key, ttl)) => TokenRecord::Known { key: Arc::new(key), expires: ttl.map(|ttl| sent + ttl) },
        None => TokenRecord::Unknown,
    })
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
            LookupError::NotConnected | LookupError::Redis(_) => Self::Unavailable(error.into()),
            LookupError::Timeout => Self::Timeout,
            LookupError::Corrupt(error) => Self::Corrupt(error.into()),
        }
    }
}
