use std::result;

use redis::{ErrorKind, RedisError};

pub(crate) type Result<T> = result::Result<T, RedisFailure>;

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
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Self::corrupt("a field is malformed"),
            _ if error.is_timeout() => Self::Timeout,
            _ => Self::Command(error),
        }
    }
}
