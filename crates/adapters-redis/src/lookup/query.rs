use std::sync::Arc;

use animal_store_app::{ApiKey, ApiKeyDigest, ports::StoreFailure};
use redis::{RedisError, pipe};

use crate::{
    concurrency::Instant,
    connection::{ConnectError, Connection, RedisEndpoint, describe},
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
#[derive(Debug, Clone)]
pub(crate) enum LookupError {
    NotConnected,
    Closed,
    Connect(ConnectError),
    Redis(RedisError),
    Timeout,
    Corrupt(TokenHashError),
}

impl LookupError {
    /// Returns whether the connection was lost.
    pub(crate) fn is_disconnection(&self) -> bool {
        matches!(self, Self::Redis(error) if error.is_connection_dropped())
    }

    pub(crate) fn describe(&self, endpoint: &RedisEndpoint, layout: &Layout) -> String {
        match self {
            Self::NotConnected => format!("there is no connection to Redis at {endpoint}"),
            Self::Closed => format!("Redis at {endpoint} closed the connection"),
            Self::Connect(error) => error.to_string(),
            Self::Redis(error) => describe(endpoint, error, &layout.names),
            Self::Timeout => format!("Redis at {endpoint} did not respond in time"),
            Self::Corrupt(error) => error.to_string(),
        }
    }

    pub(crate) fn into_directory_error(self, endpoint: &RedisEndpoint, layout: &Layout) -> StoreFailure {
        let cause = self.describe(endpoint, layout).into();
        match self {
            Self::NotConnected | Self::Closed | Self::Connect(_) | Self::Redis(_) => StoreFailure::Unavailable(cause),
            Self::Timeout => StoreFailure::Timeout,
            Self::Corrupt(_) => StoreFailure::Corrupt(cause),
        }
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

impl From<ConnectError> for LookupError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<TokenHashError> for LookupError {
    fn from(error: TokenHashError) -> Self {
        Self::Corrupt(error)
    }
}
