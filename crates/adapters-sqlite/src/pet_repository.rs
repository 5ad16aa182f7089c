use std::sync::Arc;

use animal_store_adapter_kit::queue::Sender;
use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreResult};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{creates::Creates, reads::Read};

/// Repository of one worker, on whose runtime it reads. The writer of creates is that of the process.
pub struct SqlitePetRepository {
    reads: Sender<Read>,
    creates: Arc<Creates>,
}

impl SqlitePetRepository {
    pub(crate) const fn new(reads: Sender<Read>, creates: Arc<Creates>) -> Self {
        Self { reads, creates }
    }
}

#[async_trait]
impl PetRepository for SqlitePetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> StoreResult<Vec<Pet>> {
        let list = Read::List {
            status,
            after,
            limit,
        };
        self.reads.send(list, self.creates.timeout).await
    }

    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
        let find = Read::Find(id);
        let mut pets = self.reads.send(find, self.creates.timeout).await?;
        Ok(pets.pop())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
