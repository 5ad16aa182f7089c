use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StorageError};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    PostgresSettings,
    creates::Creates,
    error::NotConnected,
    link::{Link, Open, Opener},
    pet_query::PetQuery,
    pet_row::PetRow,
    read_session::ReadSession,
};

/// The animals, as one worker sees them: it reads on connections of its own, and adds by the process' writers.
pub struct PgPetRepository {
    opener: Opener,
    settings: PostgresSettings,
    /// Opened by the first read, on the runtime that reads.
    links: OnceLock<Vec<Link<ReadSession>>>,
    turn: AtomicUsize,
    creates: Creates,
}

impl PgPetRepository {
    pub(crate) fn new(opener: Opener, settings: PostgresSettings, creates: Creates) -> Self {
        Self { opener, settings, links: OnceLock::new(), turn: AtomicUsize::new(0), creates }
    }

    async fn ask(&self, query: PetQuery) -> Result<Vec<PetRow>, StorageError> {
        let session = self.session().await?;
        session.ask(query, self.settings.timeout).await
    }

    /// The connections take turns; one that is away is passed over.
    async fn session(&self) -> Result<Arc<Open<ReadSession>>, NotConnected> {
        let links = self.links.get_or_init(|| {
            (0..self.settings.connections_per_worker)
                .map(|_| Link::new(self.opener.clone(), self.settings.clone()))
                .collect()
        });
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % links.len();
        let (passed, ahead) = links.split_at(turn);
        match ahead.iter().chain(passed).find_map(|link| link.now().ok()) {
            Some(session) => Ok(session),
            None => links[turn].session().await,
        }
    }
}

#[async_trait]
impl PetRepository for PgPetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        at_most: usize,
    ) -> Result<Vec<Pet>, StorageError> {
        let rows = self.ask(PetQuery::page(status, after, at_most)).await?;
        rows.into_iter().map(Pet::try_from).collect()
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StorageError> {
        let rows = self.ask(PetQuery::One { id: id.get() }).await?;
        rows.into_iter().next().map(Pet::try_from).transpose()
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
