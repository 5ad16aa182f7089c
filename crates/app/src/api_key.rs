//! API keys. The service stores and compares the digest of a key's token, never the token.

mod label;
mod scope;
mod token;

use std::{fmt, sync::Arc};

use thiserror::Error;

pub use self::{
    label::{ApiKeyLabel, ApiKeyLabelError, is_deceptive},
    scope::{Scope, ScopeError, Scopes},
    token::{ApiKeyDigest, ApiToken, ApiTokenError},
};

/// An API key: its id, its label and its scopes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApiKey {
    /// Identifies the key in logs and metrics. A rotation of the token does not change it.
    pub id: ApiKeyId,
    /// Human-readable name.
    pub label: ApiKeyLabel,
    /// Operations that the key may call.
    pub scopes: Scopes,
}

impl ApiKey {
    /// Builds a key from the texts that a store has. Scopes of newer releases, which are unknown, are left out.
    ///
    /// # Errors
    /// The part that is malformed.
    pub fn from_stored(id: &str, label: &str, scopes: &str) -> Result<Self, &'static str> {
        Ok(Self {
            id: ApiKeyId::parse(id).map_err(|_| "the id is malformed")?,
            label: ApiKeyLabel::from_stored(label).map_err(|_| "the label is malformed")?,
            scopes: scopes
                .split(',')
                .filter_map(|scope| scope.parse().ok())
                .collect(),
        })
    }
}

/// Identifier of an API key. It reveals nothing about the token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKeyId(Arc<str>);

/// The text is not a valid API key id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an API key id has 1 to 64 characters of A-Z a-z 0-9 - _")]
pub struct ApiKeyIdError;

impl ApiKeyId {
    /// Parses an id: 1 to 64 characters of `A-Z a-z 0-9 - _`.
    ///
    /// # Errors
    /// [`ApiKeyIdError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ApiKeyIdError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.into()))
        } else {
            Err(ApiKeyIdError)
        }
    }

    /// Makes an id of 11 base-62 digits from the first 64 of these random bits.
    pub fn from_random(bits: &[u8; 32]) -> Self {
        Self(token::base62::<11>(&bits[..8]).into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApiKeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_key_is_one_that_can_be_printed() {
        let key = ApiKey::from_stored("shop", "web shop", "read,admin").unwrap();
        assert_eq!(
            (
                key.id.as_str(),
                key.label.as_str(),
                &*key.scopes.to_string()
            ),
            ("shop", "web shop", "read")
        );
        assert_eq!(
            ApiKey::from_stored("a\n", "web shop", ""),
            Err("the id is malformed")
        );
        assert_eq!(
            ApiKey::from_stored("shop", "", ""),
            Err("the label is malformed")
        );
        let key = ApiKey::from_stored("shop", "a\u{202e}b", "read").unwrap();
        assert_eq!(key.label.as_str(), "a\\u{202e}b");
    }

    #[test]
    fn an_id_is_safe_to_print_and_to_type() {
        for text in ["a", "memory-1", "71NQ9KqGSo0", &"x".repeat(64)] {
            assert_eq!(ApiKeyId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "a b", "a\n", "\u{1b}[31m", "é", &"x".repeat(65)] {
            assert_eq!(ApiKeyId::parse(text), Err(ApiKeyIdError));
        }
        let made = ApiKeyId::from_random(&[255; 32]);
        assert_eq!(ApiKeyId::parse(&made.to_string()), Ok(made));
    }
}
