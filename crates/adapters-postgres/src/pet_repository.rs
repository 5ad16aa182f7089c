use std::sync::Arc;

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreFailure};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{connection::ConnectionSettings, creates::Creates, reads::Reads};

/// Repository of one worker. It reads on the worker's own connections and adds through the writers of the process.
pub struct PgPetRepository {
    reads: Reads,
    creates: Arc<Creates>,
}

impl PgPetRepository {
    pub(crate) fn new(connections: ConnectionSettings, creates: Arc<Creates>) -> Self {
        Self { reads: Reads::new(connections), creates }
    }
}

#[async_trait]
impl PetRepository for PgPetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<Pet>, StoreFailure> {
        self.reads.list(status, after, limit).await
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        self.reads.find(id).await
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
