use animal_store_app::ports::ApiKeyStoreError;
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
    Conflict(&'static str),
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

impl StoreError {
    pub(crate) fn describe(&self, endpoint: &RedisEndpoint, layout: &Layout) -> String {
        match self {
            Self::Connect(error) => error.to_string(),
            Self::Read(error) | Self::Write(error) => describe(endpoint, error, &layout.names),
            Self::Corrupt(error) => error.to_string(),
            Self::CorruptToken(id, error) => format!("API key {id}: {error}"),
            Self::TooManyChanges => "too many concurrent changes of API keys".to_owned(),
            Self::Conflict(what) => format!("another API key has this {what}"),
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
