//! A storage over a database of its own.

use std::{error::Error, sync::Arc, time::Duration};

use animal_store_adapters_postgres::{PgEndpoint, PgPetRepository, PgSettings, PgStorage, SchemaMode, WriterEnd};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::PgDatabase;
use tokio_postgres::{Client, NoTls};

/// The storage as one process has it, with one worker.
pub(crate) struct Store {
    pub(crate) repository: Arc<PgPetRepository>,
    pub(crate) storage: PgStorage,
    pub(crate) writer_end: WriterEnd,
}

/// Long enough for a busy machine, where nothing is meant to be late.
pub(crate) fn settings() -> PgSettings {
    PgSettings {
        schema: SchemaMode::Migrate,
        required_at_start: true,
        connections_per_worker: 2,
        transaction_pooling: false,
        connect_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
        max_waiting_creates: 1000,
    }
}

pub(crate) fn endpoint(url: &str) -> PgEndpoint {
    PgEndpoint::new(&url.into()).expect("a URL")
}

impl Store {
    /// At this URL.
    pub(crate) async fn at(url: &str, settings: PgSettings) -> Self {
        let (storage, writer_end) = PgStorage::start(endpoint(url), endpoint(url), settings).await.expect("a storage");
        Self { repository: Arc::new(storage.repository()), storage, writer_end }
    }
}

/// How long something that has to happen may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at something that is waited for, so that looking does not keep it from happening.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// An error and what it comes from, as the program shows them.
pub(crate) fn chain(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", chain(source)))
}

/// An empty repository, and what it needs until the test ends.
pub(crate) async fn repository() -> (Arc<dyn PetRepository>, (PgStorage, PgDatabase)) {
    let database = PgDatabase::new();
    let store = Store::at(database.url(), settings()).await;
    (store.repository, (store.storage, database))
}

/// A client that is none of the storage's.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    client
}
