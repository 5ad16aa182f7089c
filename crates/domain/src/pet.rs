use crate::{CategoryId, PetId, PetName, PetStatus};

/// A pet before it is created: all its members except the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPet {
    name: PetName,
    category_id: CategoryId,
    status: Option<PetStatus>,
}

impl NewPet {
    /// Creates a pet from its required members, without a status.
    pub const fn new(name: PetName, category_id: CategoryId) -> Self {
        Self {
            name,
            category_id,
            status: None,
        }
    }

    /// Sets the status. There is no default: a pet may have no status.
    #[must_use]
    pub fn with_status(self, status: impl Into<Option<PetStatus>>) -> Self {
        Self {
            status: status.into(),
            ..self
        }
    }

    /// Name of the pet.
    pub const fn name(&self) -> &PetName {
        &self.name
    }

    /// Category of the pet.
    pub const fn category_id(&self) -> CategoryId {
        self.category_id
    }

    /// Availability of the pet, if it has a status.
    pub const fn status(&self) -> Option<PetStatus> {
        self.status
    }

    /// Returns the members as bytes. They differ if the pets do, and must never change: their digests are stored.
    ///
    /// A new member is appended as a zero byte, which no value contains, its name, `=` and its value, and only if the
    /// pet has it: pets without it keep their bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self {
            name,
            category_id,
            status,
        } = self;
        let status = status.map_or(0, PetStatus::number);
        [
            &category_id.get().to_be_bytes()[..],
            &status.to_be_bytes(),
            name.as_str().as_bytes(),
        ]
        .concat()
    }
}

/// A pet of the store: a [`NewPet`] with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pet {
    id: PetId,
    new_pet: NewPet,
}

impl Pet {
    /// Assigns an id to a new pet.
    pub const fn new(id: PetId, new_pet: NewPet) -> Self {
        Self { id, new_pet }
    }

    /// Identifier of the pet.
    pub const fn id(&self) -> PetId {
        self.id
    }

    /// The pet as it was created, without its id.
    pub const fn new_pet(&self) -> &NewPet {
        &self.new_pet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pet_has_the_members_that_it_was_created_with() {
        let name = PetName::parse("Rex").unwrap();
        for category_id in [i64::MIN, -1, 0, 1, i64::MAX] {
            let pet = NewPet::new(name.clone(), CategoryId::new(category_id));
            assert_eq!(
                (pet.name(), pet.category_id().get(), pet.status()),
                (&name, category_id, None)
            );
            for status in PetStatus::ALL {
                assert_eq!(pet.clone().with_status(status).status(), Some(status));
            }
            assert_eq!(
                pet.clone().with_status(PetStatus::Sold).with_status(None),
                pet
            );
        }
    }

    /// Every storage contains digests of these bytes.
    #[test]
    fn the_bytes_of_a_pet_never_change_and_have_each_member() {
        let pet = NewPet::new(PetName::parse("Rex").unwrap(), CategoryId::new(-2));
        assert_eq!(pet.to_bytes(), b"\xff\xff\xff\xff\xff\xff\xff\xfe\0\0Rex");
        assert_eq!(
            pet.with_status(PetStatus::Sold).to_bytes(),
            b"\xff\xff\xff\xff\xff\xff\xff\xfe\0\x03Rex"
        );
    }
}
