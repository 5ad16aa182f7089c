//! The backends: what the program does with a store of pets, of API keys, or of both.
//!
//! Each backend has a file with its settings, the start of the service, commands, copies, migrations, and what `doctor`
//! examines. `config` selects one for pets and one for API keys.

mod access;
pub(crate) mod memory;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod sqlite;

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use animal_store_adapter_kit::{KeyDatabase, SqlApiKeyStore};
use animal_store_app::{
    Finding,
    ports::{ApiKeyDirectory, ApiKeyStore, ApiKeyUses, BulkStorage, PetRepository, Readiness},
};
use animal_store_settings::{Values, parsers::duration};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

pub(crate) use self::access::Access;

const EXPOSED: &str = "machines on the way can read and change what is sent: the connection to another machine does \
                       not require TLS with a certificate that is checked";

/// The setting of the time for which an idempotency key is kept.
pub(crate) const RETENTION: &str = "storage.idempotency_retention";
const RETENTIONS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(30 * 24);

/// Creates the repository of one worker.
pub(crate) type NewRepository = Arc<dyn Fn() -> Arc<dyn PetRepository> + Send + Sync>;

/// A storage of pets that was started.
pub(crate) struct Storage {
    pub(crate) new_repository: NewRepository,
    /// `None`: always ready.
    pub(crate) readiness: Option<Arc<dyn Readiness>>,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
}

/// A source of API keys that was started.
pub(crate) struct ApiKeys {
    pub(crate) directory: Arc<dyn ApiKeyDirectory>,
    pub(crate) uses: Arc<dyn ApiKeyUses>,
    /// `None`: always ready.
    pub(crate) readiness: Option<Arc<dyn Readiness>>,
    /// They end after the directory of API keys and the last record of their uses are dropped, the last uses are
    /// written, and both are closed.
    pub(crate) tasks: Vec<JoinHandle<()>>,
    /// Keeps the directory up to date, and can be slow to end: a shutdown does not wait for it.
    pub(crate) session: Option<JoinHandle<()>>,
}

/// A backend of pets, of API keys, or of both.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Returns its name, and where it is.
    fn place(&self) -> String;

    /// Examines it, and the API keys in it if there are some.
    async fn diagnose(&self, has_api_keys: bool) -> Vec<Finding>;

    /// Returns a warning if others can read the connections to it.
    fn exposure(&self) -> Option<Finding> {
        None
    }
}

/// A backend of pets.
#[async_trait]
pub(crate) trait PetsBackend: Backend {
    /// Starts the storage: for a command, without migrations.
    async fn start(&self, access: &mut Access, registry: &mut Registry) -> anyhow::Result<Storage>;

    /// Opens one side of a copy. A source is read with the rights of the service, and a target is written with those of
    /// migrations.
    async fn open_bulk(&self, access: &mut Access) -> anyhow::Result<Arc<dyn BulkStorage>>;

    /// Runs the pending migrations, unless `dry_run` is set. Returns their versions.
    async fn migrate(&self, dry_run: bool) -> anyhow::Result<Vec<String>>;

    /// Returns the place, equal for equal stores.
    fn identity(&self) -> String {
        self.place()
    }

    /// Returns the number of connections that this number of workers opens.
    fn connections(&self, _workers: usize) -> usize {
        0
    }
}

/// A backend of API keys.
#[async_trait]
pub(crate) trait ApiKeysBackend: Backend {
    /// Starts the source of the service.
    async fn start(&self, access: &mut Access, registry: &mut Registry) -> anyhow::Result<ApiKeys>;

    /// Opens the store that issues API keys. `None`: the API keys are part of the configuration.
    async fn open_store(&self, access: &mut Access)
    -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>>;

    /// Returns the place where commands change the API keys.
    fn administered_place(&self) -> String {
        self.place()
    }
}

fn read_retention(values: &mut Values) -> Duration {
    values.get(RETENTION, duration(RETENTIONS))
}

/// Starts the API keys of a database. The task that is returned ends when the directory is closed.
fn start_sql_api_keys<D: KeyDatabase>(
    store: &SqlApiKeyStore<D>,
    registry: &mut Registry,
) -> (ApiKeys, JoinHandle<()>) {
    let (uses, uses_end) = store.start_uses(registry);
    let (directory, directory_end) = store.start_directory(registry);
    let directory = Arc::new(directory);
    let api_keys = ApiKeys {
        // The probe outlives the workers.
        readiness: Some(Arc::new(Arc::downgrade(&directory))),
        directory,
        uses: Arc::new(uses),
        tasks: vec![uses_end],
        session: None,
    };
    (api_keys, directory_end)
}
