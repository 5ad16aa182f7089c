use sha2::{Digest, Sha256};

use crate::ApiKeyId;

/// Names an addition, so that it is made once however often it is asked for. Each API key has names of its own.
///
/// Of what the client calls it nothing is kept but the SHA-256 digest: it may be nobody's business.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    api_key: ApiKeyId,
    digest: [u8; 32],
}

impl IdempotencyKey {
    /// What the client of this API key calls so.
    pub fn new(api_key: ApiKeyId, text: &str) -> Self {
        Self { api_key, digest: Sha256::digest(text).into() }
    }

    /// Whose it is.
    pub const fn api_key(&self) -> &ApiKeyId {
        &self.api_key
    }

    /// By which it is told from others of the same API key.
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
    fn a_key_is_known_by_its_text_and_by_whose_it_is() {
        assert_eq!(key("a", "1"), key("a", "1"));
        assert_ne!(key("a", "1"), key("a", "2"));
        assert_ne!(key("a", "1"), key("b", "1"));
        assert_eq!(key("a", "1").digest(), key("b", "1").digest());
    }

    #[test]
    fn only_a_digest_of_the_text_is_kept() {
        let key = key("a", "abc");
        assert_eq!(key.digest()[..4], [0xba, 0x78, 0x16, 0xbf], "FIPS 180-2, appendix B.1");
        assert!(!format!("{key:?}").contains("abc"));
    }
}
