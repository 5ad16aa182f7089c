use std::sync::Arc;

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreResult};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    creates::Creates,
    reads::{Page, Read, Reads},
};

/// Tables and sequences of pets, and the permissions on them that the service needs.
pub(crate) const FOR_PETS: [(&str, &str); 4] = [
    ("pets", "SELECT, INSERT"),
    ("idempotency_keys", "SELECT, INSERT, UPDATE, DELETE"),
    ("idempotency_readings", "SELECT, INSERT, DELETE"),
    ("pets_id_seq", "USAGE"),
];

/// Repository of one worker. It reads on the worker's own connections and adds through the writers of the process.
pub struct PgPetRepository {
    reads: Arc<Reads>,
    creates: Arc<Creates>,
}

impl PgPetRepository {
    pub(crate) const fn new(reads: Arc<Reads>, creates: Arc<Creates>) -> Self {
        Self { reads, creates }
    }
}

#[async_trait]
impl PetRepository for PgPetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> StoreResult<Vec<Pet>> {
        let page = Page { after, limit };
        let read = status.map_or(Read::List(page), |status| Read::ListByStatus(status, page));
        self.reads.send(read).await
    }

    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
        let mut pets = self.reads.send(Read::Get(id)).await?;
        Ok(pets.pop())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
