use crate::{CategoryId, PetName, PetStatus};

/// A pet before it is created: all its members except the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPet {
    /// Name of the pet.
    pub name: PetName,
    /// Category of the pet.
    pub category_id: CategoryId,
    /// Availability of the pet. There is no default: a pet may have no status.
    pub status: Option<PetStatus>,
}

impl NewPet {
    /// Creates a pet from its required members, without a status.
    pub const fn new(name: PetName, category_id: CategoryId) -> Self {
        Self { name, category_id, status: None }
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(self, status: impl Into<Option<PetStatus>>) -> Self {
        Self { status: status.into(), ..self }
    }
}
