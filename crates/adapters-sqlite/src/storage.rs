//! The storage of pets: every request of the service, its settings, its start and its probe.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use animal_store_adapter_kit::{metrics::QueueMetrics, queue::Sender};
use animal_store_app::ports::{
    AddPet, AddPetError, AddedPet, Cause, PetRepository, Readiness, StoreFailure, StoreResult,
    UNFINISHED_COPY,
};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;
use diesel::connection::SimpleConnection;
use prometheus_client::registry::Registry;
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    SqliteFile, SqliteFileError,
    bulk::has_unfinished_copy,
    creates::{self, Create},
    reads::{self, Read},
    session::{Session, begin},
    values::number,
};

/// How the adapter uses its file. Every duration is greater than zero.
#[derive(Debug, Clone)]
pub struct SqliteSettings {
    /// Longest time that a request waits in a queue, and longest wait for the lock of another process.
    pub timeout: Duration,
    /// Capacity of the queue for reads of each worker.
    pub max_waiting_reads: usize,
    /// Capacity of the queue for creates.
    pub max_waiting_creates: usize,
    /// How long an idempotency key is kept, in whole milliseconds.
    pub idempotency_retention: Duration,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(2),
            max_waiting_reads: 2000,
            max_waiting_creates: 1000,
            idempotency_retention: Duration::from_hours(24),
        }
    }
}

/// Storage of a process.
pub struct SqliteStorage(Arc<Shared>);

/// Repository of one worker, on whose runtime it reads. The writer of creates is that of the process.
pub struct SqlitePetRepository {
    shared: Arc<Shared>,
    /// Created by the first read, on the runtime of the worker. When it is dropped, the dispatchers end.
    reads: OnceLock<Sender<Read>>,
}

/// What the repositories have in common. After it is dropped, the writer ends; before, all connections for reads are
/// closed.
pub(crate) struct Shared {
    pub(crate) file: SqliteFile,
    pub(crate) settings: SqliteSettings,
    pub(crate) read_metrics: QueueMetrics,
    creates: Sender<Create>,
}

impl SqliteStorage {
    /// Starts the writer, on the current runtime. Metrics are registered with the prefix `storage`.
    ///
    /// The returned task ends after this and the last repository are dropped, all queued creates have their outcome,
    /// and the connections are closed.
    ///
    /// # Errors
    /// If a connection to the file cannot be opened.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        file: &SqliteFile,
        settings: SqliteSettings,
        registry: &mut Registry,
    ) -> Result<(Self, JoinHandle<()>), SqliteFileError> {
        if Session::new(file).execute(|connection| Ok(has_unfinished_copy(connection)?))? {
            tracing::warn!(file = %file.path().display(), "{UNFINISHED_COPY}");
        }
        let [read_metrics, create_metrics] = QueueMetrics::register(registry, ["read", "create"]);
        let (creates, writer) = creates::start(file, &settings, create_metrics);
        Ok((
            Self(Arc::new(Shared {
                file: file.clone(),
                settings,
                read_metrics,
                creates,
            })),
            writer,
        ))
    }

    /// Returns the repository of one worker.
    pub fn repository(&self) -> SqlitePetRepository {
        SqlitePetRepository {
            shared: Arc::clone(&self.0),
            reads: OnceLock::new(),
        }
    }

    /// Returns the probe of reads and creates. It does not keep the storage from ending.
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        Arc::new(Arc::downgrade(&self.0))
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
        self.read(Read::List {
            status,
            after,
            limit,
        })
        .await
    }

    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
        Ok(self.read(Read::Find(id)).await?.pop())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let Shared {
            creates, settings, ..
        } = &*self.shared;
        creates
            .send(Create(request), settings.timeout)
            .await?
            .ok_or(AddPetError::IdempotencyMismatch)
    }
}

impl SqlitePetRepository {
    async fn read(&self, read: Read) -> StoreResult<Vec<Pet>> {
        self.reads
            .get_or_init(|| reads::start(&self.shared))
            .send(read, self.shared.settings.timeout)
            .await
    }
}

/// Ready if a pet can be read, a transaction of a create can begin, and the path still names the file.
#[async_trait]
impl Readiness for Shared {
    async fn check(&self) -> Result<(), Cause> {
        let (session, wait) = (Session::new(&self.file), self.settings.timeout);
        let check = session.run_on_connection(move |file, connection| {
            number(
                connection,
                "SELECT count(*) FROM (SELECT * FROM pets LIMIT 1)",
            )?;
            begin(connection, wait)?;
            connection.batch_execute("ROLLBACK")?;
            file.check_in_place()
        });
        let checked = timeout(wait, check)
            .await
            .map_err(|_| StoreFailure::Timeout)?;
        checked.map_err(|error| Cause::of(&error))
    }
}
