//! API keys as the service knows them: never by their tokens.

mod base62;
mod digest;
mod label;
mod scope;
mod token;

use std::{fmt, sync::Arc};

pub use self::{
    digest::ApiKeyDigest,
    label::{ApiKeyLabel, LabelError},
    scope::{Scope, Scopes, UnknownScope},
    token::ApiToken,
};

/// An API key: what it is called, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Names the key in logs and metrics; it stays when the token is rotated.
    pub id: ApiKeyId,
    /// What people call it.
    pub label: ApiKeyLabel,
    /// What it may do.
    pub scopes: Scopes,
}

/// Names an API key without telling anything of its token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKeyId(Arc<str>);

impl ApiKeyId {
    /// Takes any text that is safe to print.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id that this text is: 1 to 64 of `A-Z a-z 0-9 - _`. `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        ((1..=64).contains(&text.len()) && text.bytes().all(allowed)).then(|| Self::new(text))
    }

    /// An id for a new key: 11 digits of base 62 made of the first 64 bits.
    pub fn from_random(bits: &[u8; 32]) -> Self {
        Self(base62::encode::<11>(&bits[..8]).into())
    }

    /// The text.
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
    fn an_id_is_safe_to_print_and_to_type() {
        for text in ["a", "memory-1", "71NQ9KqGSo0", &"x".repeat(64)] {
            assert_eq!(ApiKeyId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "a b", "a\n", "\u{1b}[31m", "é", &"x".repeat(65)] {
            assert_eq!(ApiKeyId::parse(text), None);
        }
        let made = ApiKeyId::from_random(&[255; 32]);
        assert_eq!(ApiKeyId::parse(made.as_str()), Some(made));
    }
}
