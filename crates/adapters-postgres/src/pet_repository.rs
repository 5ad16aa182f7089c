use std::sync::Arc;

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreResult};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    creates::Creates,
    reads::{List, Read, Reads},
};

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
        let list = List {
            status,
            after: after.map_or(0, PetId::get),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
        };
        self.reads.send(Read::List(list)).await
    }

    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
        let mut pets = self.reads.send(Read::Get(id.get())).await?;
        Ok(pets.pop())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
