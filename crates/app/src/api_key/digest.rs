use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// SHA-256 digest of a token: the only form in which a directory stores and compares tokens.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyDigest([u8; 32]);

impl ApiKeyDigest {
    /// Computes the digest of a token. The work depends only on the length of the token.
    pub fn of(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
    }

    /// Wraps a digest that an adapter stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes, for adapters that store them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Prints no part of the digest: a short token could be guessed from it.
impl fmt::Debug for ApiKeyDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKeyDigest(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_sha_256() {
        let digest = ApiKeyDigest::of(&"abc".into());
        assert_eq!(digest.as_bytes()[..4], [0xba, 0x78, 0x16, 0xbf], "FIPS 180-2, appendix B.1");
        assert_eq!(digest.as_bytes()[28..], [0xf2, 0x00, 0x15, 0xad]);
        assert_eq!(ApiKeyDigest::from_bytes(*digest.as_bytes()), digest);
    }

    #[test]
    fn no_part_of_a_digest_is_printed() {
        assert_eq!(format!("{:?}", ApiKeyDigest::of(&"abc".into())), "ApiKeyDigest(..)");
    }
}
