use crate::{CategoryId, NewPet, PetId, PetName, PetStatus};

/// An animal of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pet {
    id: PetId,
    description: NewPet,
}

impl Pet {
    /// Gives a new animal its id.
    pub const fn new(id: PetId, description: NewPet) -> Self {
        Self { id, description }
    }

    /// Its id.
    pub const fn id(&self) -> PetId {
        self.id
    }

    /// Everything but its id.
    pub const fn description(&self) -> &NewPet {
        &self.description
    }

    /// Its name.
    pub const fn name(&self) -> &PetName {
        self.description.name()
    }

    /// Its category.
    pub const fn category_id(&self) -> CategoryId {
        self.description.category_id()
    }

    /// Its status, where it has one.
    pub const fn status(&self) -> Option<PetStatus> {
        self.description.status()
    }
}
