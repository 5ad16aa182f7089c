use crate::{CategoryId, PetName, PetStatus};

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
        Self { name, category_id, status: None }
    }

    /// Sets the status. There is no default: a pet may have no status.
    #[must_use]
    pub fn with_status(self, status: impl Into<Option<PetStatus>>) -> Self {
        Self { status: status.into(), ..self }
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
}
