use sha2::{Digest, Sha256};

use crate::ApiKeyId;

/// A client-chosen key of a create request, unique per API key, so that a retry does not add a second pet.
///
/// Only the SHA-256 digest of the client's text is kept: the text may contain private data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    /// The API key whose client chose the key.
    pub api_key: ApiKeyId,
    /// SHA-256 digest of the client's text.
    pub digest: [u8; 32],
}

impl IdempotencyKey {
    /// Creates the key from the text that a client of this API key sent.
    pub fn new(api_key: ApiKeyId, text: &str) -> Self {
        Self { api_key, digest: Sha256::digest(text).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_digest_of_the_text_is_kept() {
        let key = IdempotencyKey::new(ApiKeyId::new("key"), "abc");
        assert_eq!(key.digest[..4], [0xba, 0x78, 0x16, 0xbf], "FIPS 180-2, appendix B.1");
        assert!(!format!("{key:?}").contains("abc"));
    }
}
