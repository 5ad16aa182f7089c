use std::{sync::Arc, time::Instant};

use animal_store_app::{ApiKey, ApiKeyDigest, ports::ApiKeyDirectoryError};
use redis::{RedisError, aio::MultiplexedConnection, pipe};
use thiserror::Error;

use crate::{
    layout::Layout,
    stored_token::{self, Corrupt, Life},
};

/// What Redis says of a token.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// It belongs to this key, until then.
    Known { key: Arc<ApiKey>, expires: Option<Instant> },
    /// It belongs to no key.
    Unknown,
}

impl Answer {
    pub(crate) fn key(self) -> Option<Arc<ApiKey>> {
        match self {
            Self::Known { key, .. } => Some(key),
            Self::Unknown => None,
        }
    }
}

/// What comes of a look-up. It can be shared by all who wait for it.
pub(crate) type Outcome = Result<Answer, LookUpError>;

#[derive(Debug, Clone, Error)]
pub(crate) enum LookUpError {
    #[error("there is no connection to Redis")]
    NotConnected,
    #[error("Redis: {0}")]
    Redis(RedisError),
    #[error("Redis did not answer in time")]
    Deadline,
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// Asks Redis, which answers before the deadline of the connection.
pub(crate) async fn ask(mut connection: MultiplexedConnection, layout: &Layout, digest: &ApiKeyDigest) -> Outcome {
    let name = layout.token(digest);
    // The time that is left is counted from before Redis looked at its clock: an entry ends early, not late.
    let asked = Instant::now();
    let mut question = pipe();
    question.cmd("HMGET").arg(&name).arg(&stored_token::KEY_FIELDS).cmd("PTTL").arg(&name);
    let (fields, left): (stored_token::KeyFields, i64) = question.query_async(&mut connection).await?;
    let expires = match Life::of(left) {
        Life::Over => return Ok(Answer::Unknown),
        Life::Left(left) => Some(asked + left),
        Life::Endless => None,
    };
    Ok(match stored_token::key(fields)? {
        Some(key) => Answer::Known { key: Arc::new(key), expires },
        None => Answer::Unknown,
    })
}

impl From<RedisError> for LookUpError {
    fn from(error: RedisError) -> Self {
        match Corrupt::of(&error) {
            Some(corrupt) => Self::Corrupt(corrupt),
            None if error.is_timeout() => Self::Deadline,
            None => Self::Redis(error),
        }
    }
}

impl From<LookUpError> for ApiKeyDirectoryError {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::NotConnected | LookUpError::Redis(_) => Self::Unavailable(error.into()),
            LookUpError::Deadline => Self::Timeout,
            LookUpError::Corrupt(error) => Self::Corrupt(error.into()),
        }
    }
}
