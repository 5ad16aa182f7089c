use animal_store_app::ports::ApiKeyStoreError;
use redis::RedisError;
use thiserror::Error;

use crate::token_hash::TokenHashError;

#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// A read failed, or a connection.
    // Not a source: the message contains it.
    #[error("Redis: {0}")]
    Read(RedisError),
    #[error("Redis: {0}")]
    Write(RedisError),
    #[error(transparent)]
    Corrupt(#[from] TokenHashError),
    #[error("API key {0}: {1}")]
    CorruptToken(String, TokenHashError),
    #[error("too many concurrent changes of API keys")]
    TooManyChanges,
    #[error("another API key has this {0}")]
    Conflict(&'static str),
}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        TokenHashError::from_redis(&error).map_or(Self::Read(error), Self::Corrupt)
    }
}

impl From<StoreError> for ApiKeyStoreError {
    fn from(error: StoreError) -> Self {
        match &error {
            // An error reply means that nothing was applied; after any other failure the outcome is unknown.
            StoreError::Write(cause) if cause.code().is_none() => Self::OutcomeUnknown(error.into()),
            StoreError::Read(_) | StoreError::Write(_) | StoreError::TooManyChanges => Self::Unavailable(error.into()),
            StoreError::Conflict(_) => Self::Conflict(error.into()),
            StoreError::Corrupt(_) | StoreError::CorruptToken(..) => Self::Corrupt(error.into()),
        }
    }
}
