use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// SHA-256 digest of a token: the only form in which a directory stores and compares tokens.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyDigest(pub [u8; 32]);

impl ApiKeyDigest {
    /// Computes the digest of a token. The work depends only on the length of the token.
    pub fn of(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
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
    fn the_digest_is_a_sha_256_of_which_no_part_is_printed() {
        let digest = ApiKeyDigest::of(&"abc".into());
        assert_eq!(digest.0[..4], [0xba, 0x78, 0x16, 0xbf], "FIPS 180-2, appendix B.1");
        assert_eq!(format!("{digest:?}"), "ApiKeyDigest(..)");
    }
}
