use crate::{NewPet, PetId};

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
