use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StorageError};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    connection::ConnectionSettings,
    creates::Creates,
    reads::{PetQuery, Reads},
};

/// Repository of one worker. It reads on the worker's own connections and adds through the writers of the process.
pub struct PgPetRepository {
    reads: Reads,
    creates: Creates,
}

impl PgPetRepository {
    pub(crate) fn new(connections: ConnectionSettings, creates: Creates) -> Self {
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
    ) -> Result<Vec<Pet>, StorageError> {
        let rows = self.reads.load(PetQuery::list(status, after, limit)).await?;
        rows.into_iter().map(Pet::try_from).collect()
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StorageError> {
        let rows = self.reads.load(PetQuery::find(id)).await?;
        rows.into_iter().next().map(Pet::try_from).transpose()
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
