//! The storage of a process with one worker.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::{
    MigrationError, Migrations, PgEndpoint, PgPetRepository, PgStorage, PostgresSettings,
};
use animal_store_app::test_support::wait_until;
use animal_store_test_servers::{FaultProxy, PgDatabase, PgUser, PostgresServer, sample};
use futures_util::future::join;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::task::JoinHandle;

pub(crate) struct Store {
    pub(crate) repository: Arc<PgPetRepository>,
    pub(crate) storage: PgStorage,
    pub(crate) writer: JoinHandle<()>,
    pub(crate) registry: Registry,
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
    Migrations::new(endpoint(url), Duration::from_secs(30))
}

/// A database with empty tables that no background process analyzes.
pub(crate) async fn migrated() -> PgDatabase {
    let database = PgDatabase::new();
    migrations(database.url()).run().await.expect("migrated");
    for table in ["pets", "idempotency_keys"] {
        let off = format!("ALTER TABLE {table} SET (autovacuum_enabled = off)");
        database.sql(&off);
    }
    database
}

/// Starts a storage with these URLs, for requests and for migrations.
pub(crate) async fn start_storage(
    url: &str,
    direct: &str,
    settings: PostgresSettings,
) -> Result<Store, MigrationError> {
    let mut registry = Registry::default();
    let started = PgStorage::start(endpoint(url), endpoint(direct), settings, &mut registry);
    let (storage, writer) = started.await?;
    Ok(Store {
        repository: Arc::new(storage.repository()),
        storage,
        writer,
        registry,
    })
}

impl Store {
    pub(crate) async fn at(url: &str, settings: PostgresSettings) -> Self {
        let started = start_storage(url, url, settings).await;
        started.expect("a storage")
    }

    /// A storage with its own server, which is connected.
    pub(crate) async fn served(settings: PostgresSettings) -> (PostgresServer, Self) {
        let server = PostgresServer::start();
        let store = Self::at(&server.url(), settings).await;
        store.wait_until_connected().await;
        (server, store)
    }

    /// A storage that finds its tables in this schema first.
    pub(crate) async fn in_schema(
        database: &PgDatabase,
        schema: &str,
        settings: PostgresSettings,
    ) -> Self {
        let option = format!("options=-c%20search_path%3D{schema},public");
        Self::at(&with_option(database.url(), &option), settings).await
    }

    /// Uses and checks the storage until both succeed, and waits until all connections are up.
    pub(crate) async fn wait_until_connected(&self) {
        self.wait_until_it_works().await;
        self.wait_for_connections().await;
    }

    /// Waits until all connections are up. Until then, batches share those that are.
    pub(crate) async fn wait_for_connections(&self) {
        let all_connected = async || {
            ["reads", "creates"].iter().all(|purpose| {
                let [connecting, _, unavailable] = self.connections(purpose);
                connecting + unavailable == 0
            })
        };
        wait_until("all connections", all_connected).await;
    }

    /// The value of a counter or gauge.
    #[track_caller]
    fn metric(&self, series: &str) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("the metrics are encoded");
        sample(&text, series)
    }

    /// The numbers of requests that were sent, and of batches, of this kind.
    #[track_caller]
    pub(crate) fn requests_and_batches(&self, kind: &str) -> [u64; 2] {
        ["queue_wait", "batch_duration"]
            .map(|name| self.metric(&format!("storage_{name}_seconds_count{{kind=\"{kind}\"}}")))
    }

    #[track_caller]
    pub(crate) fn read_batches(&self) -> u64 {
        self.requests_and_batches("read")[1]
    }

    /// The numbers of requests that failed by a timeout, with an unknown outcome, and as unavailable.
    #[track_caller]
    pub(crate) fn failures(&self) -> [u64; 3] {
        ["timeout", "outcome_unknown", "unavailable"]
            .map(|reason| self.metric(&format!("storage_failures_total{{reason=\"{reason}\"}}")))
    }

    /// Numbers of connections that are connecting, connected and unavailable.
    #[track_caller]
    pub(crate) fn connections(&self, purpose: &str) -> [u64; 3] {
        ["connecting", "connected", "unavailable"].map(|state| {
            let labels = format!("purpose=\"{purpose}\",state=\"{state}\"");
            self.metric(&format!("postgres_connections{{{labels}}}"))
        })
    }
}

/// A proxy to the server of this URL, and the URL of the same database through the proxy.
pub(crate) fn proxy_to(url: &str) -> (FaultProxy, String) {
    let (authority, database) = url.rsplit_once('/').expect("a database");
    let user = authority.rsplit_once('@').expect("a user").0;
    let proxy = FaultProxy::to(port_of(url));
    let url = format!("{user}@{}/{database}", proxy.address());
    (proxy, url)
}

/// The port of a URL.
pub(crate) fn port_of(url: &str) -> u16 {
    let authority = url.rsplit_once('/').expect("a database").0;
    let port = authority.rsplit_once(':').expect("a scheme").1;
    port.parse().unwrap_or(5432)
}

/// Makes a call, and cuts the connections as soon as the proxy holds data.
pub(crate) async fn cut_when_held<T>(proxy: &FaultProxy, call: impl Future<Output = T>) -> T {
    let meanwhile = async {
        wait_until("something is held", async || proxy.held() > 0).await;
        proxy.cut();
    };
    join(call, meanwhile).await.0
}

/// Sets a parameter of a server, and waits until it has the value.
pub(crate) async fn set(server: &PostgresServer, name: &str, value: &str) {
    server.sql(&format!("ALTER SYSTEM SET {name} = '{value}'"));
    server.sql("SELECT pg_reload_conf()");
    let show = format!("SHOW {name}");
    wait_until("the setting", async || server.sql(&show) == value).await;
}

/// A user with these permissions.
pub(crate) fn user_with(database: &PgDatabase, permissions: &[&str]) -> PgUser {
    let user = database.user();
    for permission in permissions {
        database.sql(&format!("GRANT {permission} TO {}", user.name));
    }
    user
}

/// What a user needs to use all tables, and to read them.
pub(crate) const ALL: [&str; 2] = [
    "ALL ON ALL TABLES IN SCHEMA public",
    "ALL ON ALL SEQUENCES IN SCHEMA public",
];
pub(crate) const READ: &str = "SELECT ON ALL TABLES IN SCHEMA public";
