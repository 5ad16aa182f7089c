use std::sync::{Arc, OnceLock};

use animal_store_adapter_kit::queue::Sender;
use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreResult};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    batching::batching,
    connection::ConnectionSettings,
    creates::Creates,
    reads::{List, Read, ReadSession},
};

/// Repository of one worker. It reads on the worker's own connections and adds through the writers of the process.
pub struct PgPetRepository {
    settings: ConnectionSettings,
    creates: Arc<Creates>,
    /// Gets, lists, and lists by status. Created by the first read, on the runtime of the worker.
    reads: OnceLock<[Sender<Read>; 3]>,
}

impl PgPetRepository {
    pub(crate) fn new(settings: ConnectionSettings, creates: Arc<Creates>) -> Self {
        Self {
            settings,
            creates,
            reads: OnceLock::new(),
        }
    }

    fn reads(&self) -> &[Sender<Read>; 3] {
        self.reads.get_or_init(|| {
            let (postgres, metrics) = (&self.settings.postgres, &self.settings.metrics);
            let (capacity, connections) =
                (postgres.max_waiting_reads, postgres.connections_per_worker);
            let kinds = metrics.reads.each_ref();
            batching::<ReadSession, 3>(
                &self.settings,
                kinds,
                capacity,
                &metrics.read_connections,
                connections,
            )
            .0
        })
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
        let [_, lists, lists_by_status] = self.reads();
        let sender = if status.is_some() {
            lists_by_status
        } else {
            lists
        };
        let (after, limit) = (
            after.map_or(0, PetId::get),
            i64::try_from(limit).unwrap_or(i64::MAX),
        );
        sender
            .send(
                Read::List(List {
                    status,
                    after,
                    limit,
                }),
                self.settings.postgres.timeout,
            )
            .await
    }

    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
        let [gets, ..] = self.reads();
        Ok(gets
            .send(Read::Get(id.get()), self.settings.postgres.timeout)
            .await?
            .pop())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.creates.add(request).await
    }
}
