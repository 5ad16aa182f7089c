use std::fmt;

use sha2::{Digest, Sha256};

use crate::{ports::StoredPet, status_number};

/// SHA-256 digest of a set of stored pets in order of id: equal for a storage, its exports and its copies.
///
/// It is displayed as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PetsDigest([u8; 32]);

impl fmt::Display for PetsDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Computes a [`PetsDigest`] and counts the pets.
#[derive(Debug, Clone, Default)]
pub struct PetsHasher {
    sha256: Sha256,
    pets: u64,
}

impl PetsHasher {
    /// Adds a pet with a greater id than all pets before. Files contain digests, so the encoding must never change.
    ///
    /// Integers are big-endian; the length of the name precedes it. A new member is appended as the byte 0xFF, which
    /// no id begins with, its name, `=`, the length of its value and its value, and only if the pet has it: pets
    /// without it keep their digest.
    pub fn add(&mut self, stored: &StoredPet) {
        let new_pet = stored.pet.new_pet();
        let name = new_pet.name().as_str();
        self.sha256.update(stored.pet.id().get().to_be_bytes());
        self.sha256.update(new_pet.category_id().get().to_be_bytes());
        self.sha256.update(new_pet.status().map_or(0, status_number).to_be_bytes());
        self.sha256.update((name.len() as u64).to_be_bytes());
        self.sha256.update(name);
        self.sha256.update(stored.created_at.micros().to_be_bytes());
        self.pets += 1;
    }

    /// Number of pets that were added.
    pub const fn pets(&self) -> u64 {
        self.pets
    }

    /// Returns the digest of the pets that were added.
    pub fn digest(&self) -> PetsDigest {
        PetsDigest(self.sha256.clone().finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus};

    use super::*;

    fn stored(id: i64, name: &str, category: i64, status: Option<PetStatus>, micros: i64) -> StoredPet {
        let new_pet = NewPet::new(PetName::parse(name).unwrap(), CategoryId::new(category)).with_status(status);
        let created_at = CreationTime::parse(micros).unwrap();
        StoredPet { pet: Pet::new(PetId::parse(id).unwrap(), new_pet), created_at }
    }

    fn digest(pets: &[StoredPet]) -> PetsDigest {
        let mut hasher = PetsHasher::default();
        for pet in pets {
            hasher.add(pet);
        }
        hasher.digest()
    }

    /// Files contain digests. The expected ones were computed by another program.
    #[test]
    fn the_digest_of_pets_never_changes() {
        assert_eq!(digest(&[]).to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let pets = [stored(1, "Rex", 1, Some(PetStatus::Sold), 1), stored(7, "猫", -2, None, 1_763_830_800_123_456)];
        assert_eq!(digest(&pets).to_string(), "34824b13f61608d29c237652de67a0f79089bdbdf9c4725af18e0503c1e6f2e1");
    }

    #[test]
    fn pets_that_differ_in_one_member_have_different_digests() {
        let rex = || stored(1, "Rex", 1, None, 5);
        let expected = digest(&[rex()]);
        for other in [
            stored(2, "Rex", 1, None, 5),
            stored(1, "Rey", 1, None, 5),
            stored(1, "Rex", 2, None, 5),
            stored(1, "Rex", 1, Some(PetStatus::Available), 5),
            stored(1, "Rex", 1, None, 6),
        ] {
            assert_ne!(digest(&[other]), expected);
        }
        assert_ne!(digest(&[rex(), stored(2, "Rex", 1, None, 5)]), expected);
    }

    #[test]
    fn pets_are_counted() {
        let mut hasher = PetsHasher::default();
        hasher.add(&stored(1, "Rex", 1, None, 5));
        assert_eq!(hasher.pets(), 1);
    }
}
