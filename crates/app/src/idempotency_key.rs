use animal_store_domain::NewPet;
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
        Self {
            api_key,
            digest: Sha256::digest(text).into(),
        }
    }
}

/// Digest of a pet, by which two creates with one idempotency key are compared. Storages keep it with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PetDigest(pub [u8; 32]);

impl PetDigest {
    /// Computes the SHA-256 digest of [`NewPet::to_bytes`].
    pub fn from_pet(pet: &NewPet) -> Self {
        Self(Sha256::digest(pet.to_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{CategoryId, PetName, PetStatus};

    use super::*;
    use crate::test_support::api_key_id;

    #[test]
    fn only_the_digest_of_the_text_is_kept() {
        let key = IdempotencyKey::new(api_key_id("key"), "abc");
        assert_eq!(
            key.digest[..4],
            [0xba, 0x78, 0x16, 0xbf],
            "FIPS 180-2, appendix B.1"
        );
        assert!(!format!("{key:?}").contains("abc"));
    }

    /// Every storage contains digests.
    #[test]
    fn the_digest_of_a_pet_never_changes() {
        let pet = NewPet::new(PetName::parse("Rex").unwrap(), CategoryId::new(1))
            .with_status(PetStatus::Sold);
        assert_eq!(PetDigest::from_pet(&pet).0[..4], [0x80, 0xe0, 0xd1, 0xba]);
    }
}
