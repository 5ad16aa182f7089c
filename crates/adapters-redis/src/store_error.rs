use animal_store_app::ports::ApiKeyStoreError;
use redis::RedisError;
use thiserror::Error;

use crate::stored_token::Corrupt;

/// Why a store did not do what it was asked for.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    // Its sources say what it says already.
    #[error("Redis: {0}")]
    Redis(RedisError),
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    #[error("API key {0}: {1}")]
    Token(String, Corrupt),
    #[error("too many others change API keys at the same time")]
    Others,
    #[error("another API key has this id")]
    IdTaken,
    #[error("another API key has this token")]
    TokenTaken,
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Corrupt::of(&error).map_or(Self::Redis(error), Self::Corrupt)
    }
}

impl From<Failure> for ApiKeyStoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Redis(_) | Failure::Others => Self::Unavailable(failure.into()),
            Failure::IdTaken | Failure::TokenTaken => Self::Conflict(failure.into()),
            Failure::Corrupt(_) | Failure::Token(..) => Self::Corrupt(failure.into()),
        }
    }
}

/// What Redis refused itself, it did not do; of all else, nobody knows.
pub(crate) fn changed_unless_refused(error: RedisError) -> ApiKeyStoreError {
    let refused = error.code().is_some();
    if refused { Failure::Redis(error).into() } else { unknown(Failure::Redis(error)) }
}

/// A failure before or after tokens have been ended.
pub(crate) fn since(ended: bool, failure: Failure) -> ApiKeyStoreError {
    if ended { unknown(failure) } else { failure.into() }
}

pub(crate) fn unknown(failure: Failure) -> ApiKeyStoreError {
    ApiKeyStoreError::OutcomeUnknown(failure.into())
}
