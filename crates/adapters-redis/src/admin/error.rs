use animal_store_app::{ApiKeyImportConflict, ports::ApiKeyStoreError};
use redis::RedisError;

use crate::{
    connection::{ConnectError, RedisEndpoint, describe},
    layout::Layout,
    token_hash::TokenHashError,
};

#[derive(Debug)]
pub(crate) enum StoreError {
    Connect(ConnectError),
    Read(RedisError),
    Write(RedisError),
    Corrupt(TokenHashError),
    CorruptToken(String, TokenHashError),
    TooManyChanges,
    Conflict(String),
}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        TokenHashError::from_redis(&error).map_or(Self::Read(error), Self::Corrupt)
    }
}

impl From<ConnectError> for StoreError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<TokenHashError> for StoreError {
    fn from(error: TokenHashError) -> Self {
        Self::Corrupt(error)
    }
}

impl From<ApiKeyImportConflict> for StoreError {
    fn from(conflict: ApiKeyImportConflict) -> Self {
        Self::Conflict(conflict.to_string())
    }
}

impl StoreError {
    /// Another key has this `id` or this `token`.
    pub(crate) fn taken(what: &str) -> Self {
        Self::Conflict(format!("another API key has this {what}"))
    }

    pub(crate) fn describe(&self, endpoint: &RedisEndpoint, layout: &Layout) -> String {
        match self {
            Self::Connect(error) => error.to_string(),
            Self::Read(error) | Self::Write(error) => describe(endpoint, error, &layout.names),
            Self::Corrupt(error) => error.to_string(),
            Self::CorruptToken(id, error) => format!("API key {id}: {error}"),
            Self::TooManyChanges => "too many concurrent changes of API keys".to_owned(),
            Self::Conflict(reason) => reason.clone(),
        }
    }

    pub(crate) fn into_port_error(self, endpoint: &RedisEndpoint, layout: &Layout) -> ApiKeyStoreError {
        let cause = self.describe(endpoint, layout).into();
        match self {
            // An error reply means that nothing was applied; after any other failure the outcome is unknown.
            Self::Write(error) if error.code().is_none() => ApiKeyStoreError::OutcomeUnknown(cause),
            Self::Connect(_) | Self::Read(_) | Self::Write(_) | Self::TooManyChanges => {
                ApiKeyStoreError::Unavailable(cause)
            }
            Self::Conflict(_) => ApiKeyStoreError::Conflict(cause),
            Self::Corrupt(_) | Self::CorruptToken(..) => ApiKeyStoreError::Corrupt(cause),
        }
    }
}
