//! The API keys of one Redis, and why a call of it failed.

use std::time::Duration;

use animal_store_app::ports::StoreFailure;
use redis::{ErrorKind, PushInfo, RedisError};

use crate::{
    connection::{Connection, RedisEndpoint, describe},
    layout::Layout,
};

/// A Redis server, and the names that begin with one prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keyspace {
    pub(crate) endpoint: RedisEndpoint,
    pub(crate) layout: Layout,
    /// Timeout for opening a connection, and for each response.
    pub(crate) timeout: Duration,
}

/// A call of Redis failed. It can be cloned for each request that waits for its outcome.
#[derive(Debug, Clone)]
pub(crate) enum RedisFailure {
    /// There is no connection, or too many changes interrupt each other.
    Unavailable(String),
    Timeout,
    /// A command was refused, or the connection was lost.
    Command(RedisError),
    /// The connection was lost after a change was sent.
    Unconfirmed(RedisError),
    /// The value under the name of a token is not a token.
    Corrupt(String),
}

impl Keyspace {
    pub(crate) fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration) -> Self {
        Self { endpoint, layout: Layout::new(prefix), timeout }
    }

    /// Opens a connection. `on_push` is called for each push message.
    pub(crate) async fn connect(
        &self,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisFailure> {
        self.endpoint.connect(self.timeout, on_push).await.map_err(RedisFailure::Unavailable)
    }

    /// Returns the failure of a call without a session.
    pub(crate) fn not_connected(&self) -> RedisFailure {
        RedisFailure::Unavailable(format!("there is no connection to Redis at {}", self.endpoint))
    }

    pub(crate) fn describe(&self, failure: &RedisFailure) -> String {
        match failure {
            RedisFailure::Unavailable(reason) | RedisFailure::Corrupt(reason) => reason.clone(),
            RedisFailure::Timeout => format!("Redis at {} did not respond in time", self.endpoint),
            RedisFailure::Command(error) | RedisFailure::Unconfirmed(error) => {
                describe(&self.endpoint, error, &self.layout.names)
            }
        }
    }

    pub(crate) fn store_failure(&self, failure: &RedisFailure) -> StoreFailure {
        let cause = self.describe(failure).into();
        match failure {
            RedisFailure::Unavailable(_) | RedisFailure::Command(_) => StoreFailure::Unavailable(cause),
            RedisFailure::Timeout => StoreFailure::Timeout,
            RedisFailure::Unconfirmed(_) => StoreFailure::OutcomeUnknown(cause),
            RedisFailure::Corrupt(_) => StoreFailure::Corrupt(cause),
        }
    }
}

impl RedisFailure {
    /// The value that Redis holds for a token is not a token, for this reason.
    pub(crate) fn corrupt(reason: &str) -> Self {
        Self::Corrupt(format!("the value that Redis holds for a token is not valid: {reason}"))
    }

    /// Converts the error of a change. An error reply means that nothing was applied.
    pub(crate) fn of_change(error: RedisError) -> Self {
        if error.code().is_some() { Self::Command(error) } else { Self::Unconfirmed(error) }
    }

    /// Returns whether the connection was lost.
    pub(crate) fn is_disconnection(&self) -> bool {
        matches!(self, Self::Command(error) if error.is_connection_dropped())
    }
}

impl From<RedisError> for RedisFailure {
    fn from(error: RedisError) -> Self {
        // The error of a pipeline has no code; the errors of its commands have.
        let replies = error.clone().into_server_errors().unwrap_or_default();
        let wrong_type = !replies.is_empty() && replies.iter().all(|(_, reply)| reply.code() == "WRONGTYPE");
        match error.kind() {
            _ if wrong_type => Self::corrupt("it is not a hash"),
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Self::corrupt("a field is not text"),
            _ if error.is_timeout() => Self::Timeout,
            _ => Self::Command(error),
        }
    }
}
