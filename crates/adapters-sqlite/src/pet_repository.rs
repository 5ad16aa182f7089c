use std::sync::Arc;

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreFailure};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::threads::Threads;

/// Repository of all workers. Its clones share the threads that use the file.
#[derive(Clone)]
pub struct SqlitePetRepository(pub(crate) Arc<Threads>);

#[async_trait]
impl PetRepository for SqlitePetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<Pet>, StoreFailure> {
        self.0.reads.list(status, after, limit).await
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        self.0.reads.find(id).await
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.0.creates.add(request).await
    }
}
