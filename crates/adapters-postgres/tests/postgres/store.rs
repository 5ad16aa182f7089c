//! A storage over a database of its own.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::{PgEndpoint, PgPetRepository, PgStorage, PostgresSettings, SchemaMode, WriterEnd};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::{FaultProxy, PgDatabase, PostgresServer};
use tokio_postgres::{Client, NoTls};

use crate::{
    calls::{Answered, PATIENCE, comes_to, comes_to_be_ready},
    session::Session,
};

/// The storage as one process has it, with one worker.
pub(crate) struct Store {
    pub(crate) repository: Arc<PgPetRepository>,
    pub(crate) storage: PgStorage,
    pub(crate) writer_end: WriterEnd,
}

/// Long enough for a busy machine, where nothing is meant to be late.
pub(crate) fn settings() -> PostgresSettings {
    PostgresSettings {
        schema: SchemaMode::Migrate,
        required_at_start: true,
        connections_per_worker: 2,
        transaction_pooling: false,
        connect_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
        max_waiting_creates: 1000,
        idempotency_retention: Duration::from_hours(24),
    }
}

pub(crate) fn endpoint(url: &str) -> PgEndpoint {
    PgEndpoint::new(&url.into()).expect("a URL")
}

impl Store {
    /// At this URL.
    pub(crate) async fn at(url: &str, settings: PostgresSettings) -> Self {
        let (storage, writer_end) = PgStorage::start(endpoint(url), endpoint(url), settings).await.expect("a storage");
        Self { repository: Arc::new(storage.repository()), storage, writer_end }
    }
}

/// As they are, and as they are for a pooler. That one changes how we talk to the server, whoever that is.
pub(crate) fn both_ways(settings: &PostgresSettings) -> [PostgresSettings; 2] {
    [false, true].map(|transaction_pooling| PostgresSettings { transaction_pooling, ..settings.clone() })
}

/// What the tests of faults wait for.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(400);

/// What a busy machine may add to it.
pub(crate) const MARGIN: Duration = Duration::from_secs(1);

/// Where answers are meant to be late.
pub(crate) fn impatient() -> PostgresSettings {
    PostgresSettings { timeout: TIMEOUT, ..settings() }
}

/// A storage with a proxy between it and its database, and a session without.
pub(crate) struct Linked {
    pub(crate) store: Store,
    pub(crate) link: FaultProxy,
    pub(crate) other: Session,
    pub(crate) database: PgDatabase,
}

impl Linked {
    /// It has answered everything.
    pub(crate) async fn new(settings: PostgresSettings) -> Self {
        let database = PgDatabase::new();
        let (link, url) = link(database.url());
        let store = Store::at(&url, settings).await;
        comes_to(&store.repository, Answered, PATIENCE).await;
        comes_to_be_ready(&store.storage).await;
        let other = Session::of(&database).await;
        Self { store, link, other, database }
    }
}

/// A proxy to the server with this URL, and the URL of the same database by way of it.
pub(crate) fn link(url: &str) -> (FaultProxy, String) {
    let (authority, database) = url.rsplit_once('/').expect("a database");
    let (user, address) = authority.rsplit_once('@').expect("a user");
    let port = address.rsplit_once(':').map_or(5432, |(_, port)| port.parse().expect("a port"));
    let link = FaultProxy::to(port);
    let url = format!("{user}@{}/{database}", link.address());
    (link, url)
}

/// A storage in a server of its own, which has answered everything.
pub(crate) struct Served {
    pub(crate) store: Store,
    pub(crate) server: PostgresServer,
}

impl Served {
    pub(crate) async fn new(settings: PostgresSettings) -> Self {
        let server = PostgresServer::start();
        let store = Store::at(&server.url("postgres"), settings).await;
        comes_to(&store.repository, Answered, PATIENCE).await;
        comes_to_be_ready(&store.storage).await;
        Self { store, server }
    }
}

/// An empty repository that keeps idempotency keys for so long, and what it needs until the test ends.
pub(crate) async fn repository(idempotency_retention: Duration) -> (Arc<dyn PetRepository>, (PgStorage, PgDatabase)) {
    let database = PgDatabase::new();
    let store = Store::at(database.url(), PostgresSettings { idempotency_retention, ..settings() }).await;
    (store.repository, (store.storage, database))
}

/// A client that is none of the storage's.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    client
}
