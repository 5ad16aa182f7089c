use sha2::{Digest, Sha256};

use crate::ApiKeyId;

/// A client-chosen key of a create request, unique per API key, so that a retry does not add a second pet.
///
/// Only the SHA-256 digest of the client's text is kept: the text may contain private data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    api_key: ApiKeyId,
    digest: [u8; 32],
}

impl IdempotencyKey {
    /// Creates the key from the text that a client of this API key sent.
    pub fn new(api_key: ApiKeyId, text: &str) -> Self {
        Self { api_key, digest: Sha256::digest(text).into() }
    }

    /// Wraps the parts of a key that an adapter stored.
    pub const fn from_parts(api_key: ApiKeyId, digest: [u8; 32]) -> Self {
        Self { api_key, digest }
    }

    /// The API key that the idempotency key belongs to.
    pub const fn api_key(&self) -> &ApiKeyId {
        &self.api_key
    }

    /// SHA-256 digest of the client's text. It identifies the key among the keys of the same API key.
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(api_key: &str, text: &str) -> IdempotencyKey {
        IdempotencyKey::new(ApiKeyId::new(api_key), text)
    }

    #[test]
    fn a_key_is_identified_by_its_api_key_and_its_text() {
        assert_eq!(key("a", "1"), key("a", "1"));
        assert_ne!(key("a", "1"), key("a", "2"));
        assert_ne!(key("a", "1"), key("b", "1"));
        assert_eq!(key("a", "1").digest(), key("b", "1").digest());
    }

    #[test]
    fn only_the_digest_of_the_text_is_kept() {
        let key = key("a", "abc");
        assert_eq!(key.digest()[..4], [0xba, 0x78, 0x16, 0xbf], "FIPS 180-2, appendix B.1");
        assert!(!format!("{key:?}").contains("abc"));
    }
}
