use crate::{CategoryId, PetName, PetStatus};

/// An animal before it is created: everything but its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPet {
    name: PetName,
    category_id: CategoryId,
    status: Option<PetStatus>,
}

impl NewPet {
    /// Puts an animal together. No status is a status of its own: there is no default.
    pub const fn new(name: PetName, category_id: CategoryId, status: Option<PetStatus>) -> Self {
        Self { name, category_id, status }
    }

    /// Its name.
    pub const fn name(&self) -> &PetName {
        &self.name
    }

    /// Its category.
    pub const fn category_id(&self) -> CategoryId {
        self.category_id
    }

    /// Its status, where one was given.
    pub const fn status(&self) -> Option<PetStatus> {
        self.status
    }
}
