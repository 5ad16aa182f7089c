//! A storage with its own database.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::{
    MigrationError, Migrations, PgEndpoint, PgPetRepository, PgStorage, PostgresSettings,
    SchemaMode,
};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::{FaultProxy, PgDatabase, PostgresServer};
use futures_util::future::join;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    metrics::connections,
    outcomes::{Success, wait_for_outcome, wait_until, wait_until_ready},
};

/// The storage of a process with one worker.
pub(crate) struct Store {
    pub(crate) repository: Arc<PgPetRepository>,
    pub(crate) storage: PgStorage,
    pub(crate) writer: JoinHandle<()>,
    pub(crate) registry: Registry,
}

/// Settings with timeouts that do not expire on a busy machine.
pub(crate) fn settings() -> PostgresSettings {
    PostgresSettings {
        required_at_start: true,
        probe_interval: Duration::from_hours(1),
        connect_timeout: Duration::from_secs(30),
        timeout: Duration::from_secs(30),
        ..PostgresSettings::default()
    }
}

/// Settings for a user that does not own the tables.
pub(crate) fn check() -> PostgresSettings {
    PostgresSettings {
        schema: SchemaMode::Check,
        ..settings()
    }
}

/// Timeout for tests in which it expires.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Settings for tests in which some statements end in time, also on a busy machine, and the timeout of others expires.
pub(crate) fn few_seconds() -> PostgresSettings {
    PostgresSettings {
        timeout: Duration::from_secs(5),
        ..settings()
    }
}

/// Settings for tests in which the timeout expires.
pub(crate) fn short_timeout() -> PostgresSettings {
    PostgresSettings {
        timeout: TIMEOUT,
        ..settings()
    }
}

/// The settings without and with transaction pooling, which changes how the adapter talks to any server.
pub(crate) fn both_modes(settings: &PostgresSettings) -> [PostgresSettings; 2] {
    [false, true].map(|transaction_pooling| PostgresSettings {
        transaction_pooling,
        ..settings.clone()
    })
}

/// Runs a test in [`both_modes`], at the same time.
pub(crate) async fn in_both_modes(
    settings: &PostgresSettings,
    test: impl AsyncFn(PostgresSettings),
) {
    let [plain, pooling] = both_modes(settings);
    join(Box::pin(test(plain)), Box::pin(test(pooling))).await;
}

pub(crate) fn endpoint(url: &str) -> PgEndpoint {
    PgEndpoint::parse(&url.into()).expect("a URL")
}

/// Adds an option to a URL.
pub(crate) fn with_option(url: &str, option: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{option}")
}

pub(crate) fn migrations(url: &str) -> Migrations {
    Migrations::new(endpoint(url), Duration::from_secs(10))
}

/// Starts a storage that has no metrics.
pub(crate) async fn start_storage(
    endpoint: PgEndpoint,
    direct: PgEndpoint,
    settings: PostgresSettings,
) -> Result<(PgStorage, JoinHandle<()>), MigrationError> {
    PgStorage::start(endpoint, direct, settings, &mut Registry::default()).await
}

impl Store {
    pub(crate) async fn at(url: &str, settings: PostgresSettings) -> Self {
        let mut registry = Registry::default();
        let started = PgStorage::start(endpoint(url), endpoint(url), settings, &mut registry).await;
        let (storage, writer) = started.expect("a storage");
        Self {
            repository: Arc::new(storage.repository()),
            storage,
            writer,
            registry,
        }
    }

    /// A storage with its own server, which is connected.
    pub(crate) async fn served(settings: PostgresSettings) -> (PostgresServer, Self) {
        let server = PostgresServer::start();
        let store = Self::at(&server.url("postgres"), settings).await;
        (server, store.connected().await)
    }

    /// Uses and checks the storage until both succeed, and waits until all connections are up.
    pub(crate) async fn connected(self) -> Self {
        wait_for_outcome(&self.repository, Success).await;
        wait_until_ready(&self.storage).await;
        self.wait_for_connections().await;
        self
    }

    /// Waits until all connections are up. Until then, batches share those that are.
    pub(crate) async fn wait_for_connections(&self) {
        let all_connected = async || {
            ["reads", "creates"].iter().all(|purpose| {
                let [connecting, _, unavailable] = connections(&self.registry, purpose);
                connecting + unavailable == 0
            })
        };
        wait_until("all connections", all_connected).await;
    }
}

/// A proxy to the server of this URL, and the URL of the same database through the proxy.
pub(crate) fn proxy_to(url: &str) -> (FaultProxy, String) {
    let (user, port, database) = parts(url);
    let proxy = FaultProxy::to(port);
    let url = format!("{user}@{}/{database}", proxy.address());
    (proxy, url)
}

/// Makes a call, and cuts the connections as soon as the proxy holds data.
pub(crate) async fn cut_when_held<T>(proxy: &FaultProxy, call: impl Future<Output = T>) -> T {
    let meanwhile = async {
        wait_until("something is held", async || proxy.held() > 0).await;
        proxy.cut();
    };
    join(call, meanwhile).await.0
}

/// Scheme and user, port, and database of a URL.
pub(crate) fn parts(url: &str) -> (&str, u16, &str) {
    let (authority, database) = url.rsplit_once('/').expect("a database");
    let (user, address) = authority.rsplit_once('@').expect("a user");
    (
        user,
        address
            .rsplit_once(':')
            .map_or(5432, |(_, port)| port.parse().expect("a port")),
        database,
    )
}

/// An empty repository with this retention of idempotency keys, and a guard that it needs until the test ends.
pub(crate) async fn repository(
    idempotency_retention: Duration,
) -> (Arc<dyn PetRepository>, (PgStorage, PgDatabase)) {
    let database = PgDatabase::new();
    let store = Store::at(
        database.url(),
        PostgresSettings {
            idempotency_retention,
            ..settings()
        },
    )
    .await;
    (store.repository, (store.storage, database))
}
