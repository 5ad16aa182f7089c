//! Changes of sample API keys.

use std::time::Duration;

use super::{api_key, api_key_id};
use crate::{ApiKeyChange, ApiToken, NewToken};

/// Returns the stored form of the token with this text.
pub fn new_token(text: &str, lifetime: Option<Duration>) -> NewToken {
    NewToken::new(&ApiToken::parse(text.into()).expect("a token"), lifetime)
}

/// Adds an [`api_key`] with one token.
pub fn add(id: &str, text: &str, lifetime: Option<Duration>) -> ApiKeyChange {
    ApiKeyChange::Add(api_key(id), new_token(text, lifetime))
}

/// Gives a key a new token.
pub fn rotate(id: &str, text: &str, grace: Duration) -> ApiKeyChange {
    ApiKeyChange::Rotate(api_key_id(id), new_token(text, None), grace)
}

/// Revokes a key.
pub fn revoke(id: &str) -> ApiKeyChange {
    ApiKeyChange::Revoke(api_key_id(id))
}
