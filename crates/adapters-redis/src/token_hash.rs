//! The hash that Redis holds for a token, as far as both wings read it: the fields of its API key, and its expiry.

use std::time::Duration;

use animal_store_app::{ApiKey, ApiKeyId, ApiKeyLabel};
use redis::{ErrorKind, RedisError};
use thiserror::Error;

/// The fields that describe the API key of a token.
pub(crate) const KEY_FIELDS: [&str; 3] = ["id", "label", "scopes"];
/// The values of [`KEY_FIELDS`].
pub(crate) type KeyFields = (Option<String>, Option<String>, Option<String>);

/// The value under the name of a token is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the value that Redis holds for a token is not valid: {0}")]
pub(crate) struct TokenHashError(pub(crate) &'static str);

impl TokenHashError {
    /// Returns the error if the stored value is the reason why a command, or the conversion of its response, failed.
    pub(crate) fn from_redis(error: &RedisError) -> Option<Self> {
        // The error of a pipeline has no code; the errors of its commands have.
        let errors = error.clone().into_server_errors().unwrap_or_default();
        let wrong_type = !errors.is_empty() && errors.iter().all(|(_, error)| error.code() == "WRONGTYPE");
        match error.kind() {
            _ if wrong_type || error.code() == Some("WRONGTYPE") => Some(Self("it is not a hash")),
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Some(Self("a field is not text")),
            _ => None,
        }
    }
}

/// Parses the API key of a token, or `None` if there is no such token. Unknown scopes are left out.
pub(crate) fn parse_key(fields: KeyFields) -> Result<Option<ApiKey>, TokenHashError> {
    let (id, label, scopes) = match fields {
        (None, None, None) => return Ok(None),
        (Some(id), Some(label), Some(scopes)) => (id, label, scopes),
        _ => return Err(TokenHashError("the id, the label or the scopes are missing")),
    };
    Ok(Some(ApiKey {
        id: ApiKeyId::parse(&id).map_err(|_| TokenHashError("the id is malformed"))?,
        label: ApiKeyLabel::parse(&label).map_err(|_| TokenHashError("the label is malformed"))?,
        scopes: scopes.split(',').filter_map(|scope| scope.parse().ok()).collect(),
    }))
}

/// Parses the API key of a token and the time until the token expires, if it does. `pttl` is the response to `PTTL`.
pub(crate) fn parse_token(fields: KeyFields, pttl: i64) -> Result<Option<(ApiKey, Option<Duration>)>, TokenHashError> {
    let ttl = match u64::try_from(pttl) {
        Ok(milliseconds) => Some(Duration::from_millis(milliseconds)),
        Err(_) if pttl == -1 => None,
        Err(_) => return Ok(None),
    };
    Ok(parse_key(fields)?.map(|key| (key, ttl)))
}
