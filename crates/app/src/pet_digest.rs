use animal_store_domain::{NewPet, PetStatus};
use sha2::{Digest, Sha256};

/// Digest of a pet, by which two creates with one idempotency key are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PetDigest(pub [u8; 32]);

impl PetDigest {
    /// Computes the digest. Storages keep it with each idempotency key, so it must never change.
    ///
    /// A new member is appended after the name as a zero byte, which no value contains, its name, `=` and its value,
    /// and only if the pet has it: pets without it keep their digest.
    pub fn from_pet(pet: &NewPet) -> Self {
        let digest = Sha256::new()
            .chain_update(pet.category_id().get().to_be_bytes())
            .chain_update(pet.status().map_or(0, status_number).to_be_bytes())
            .chain_update(pet.name().as_str())
            .finalize();
        Self(digest.into())
    }
}

/// Returns the number of a status in tables and digests, which are kept: it must never change. No status is 0 in
/// digests.
pub const fn status_number(status: PetStatus) -> i16 {
    match status {
        PetStatus::Available => 1,
        PetStatus::Pending => 2,
        PetStatus::Sold => 3,
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{CategoryId, PetName, PetStatus};

    use super::*;

    /// Every storage contains digests.
    #[test]
    fn the_digest_of_a_pet_never_changes_and_depends_on_each_member() {
        for (name, category, status, expected) in [
            ("Rex", 1, Some(PetStatus::Sold), [0x80, 0xe0, 0xd1, 0xba]),
            ("Rex", 1, None, [0x70, 0x9b, 0x92, 0xc3]),
            ("Re", 1, None, [0x61, 0x90, 0xdc, 0x39]),
            ("Rex", -1, None, [0xcb, 0xab, 0xad, 0xca]),
        ] {
            let pet = NewPet::new(PetName::parse(name).unwrap(), CategoryId::new(category)).with_status(status);
            assert_eq!(PetDigest::from_pet(&pet).0[..4], expected, "{pet:?}");
        }
    }
}
