//! A storage whose batches the test controls: while one add waits for a lock in the server, others wait for the writer.

use std::sync::Arc;

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::ports::{AddPetError, StoreFailure};
use animal_store_domain::Pet;
use animal_store_test_servers::{FaultProxy, PgDatabase};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all, ready},
};

use crate::{
    outcomes::{add, find, wait_until_ready},
    sql_session::SqlSession,
    store::{Store, in_both_modes, proxy_to, settings},
};

/// Pets of a batch of which one is refused.
pub(crate) const NAMES: [&str; 7] = ["a", "b", "bad", "c", "d", "e", "f"];

/// PL/pgSQL that refuses the bad pet.
pub(crate) fn raise(code: &str, message: &str) -> String {
    format!("IF NEW.name = 'bad' THEN RAISE '{message}' USING ERRCODE = '{code}'; END IF")
}

pub(crate) type AddResult = Result<Pet, AddPetError>;

/// A storage that has opened its connections, and a session beside it.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) observer: SqlSession,
    pub(crate) database: PgDatabase,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: PostgresSettings) -> Self {
        Self::of(PgDatabase::new(), settings).await
    }

    /// Runs a test without and with transaction pooling, at the same time.
    pub(crate) async fn in_both_modes(test: impl AsyncFn(Self)) {
        let start = async |settings| test(Self::with(settings).await).await;
        in_both_modes(&settings(), start).await;
    }

    pub(crate) async fn of(database: PgDatabase, settings: PostgresSettings) -> Self {
        let store = Store::at(database.url(), settings).await;
        add(&store.repository, "Rex").await.expect("added");
        wait_until_ready(&store.storage).await;
        store.wait_for_connections().await;
        let observer = SqlSession::of(&database).await;
        // Two for creates and one for readiness. That of the migrations ends, and those for reads begin with a read.
        observer.wait_for_backends(3).await;
        Self {
            store,
            observer,
            database,
        }
    }

    /// A storage that is connected through a proxy. The session is not.
    pub(crate) async fn proxied(settings: PostgresSettings) -> (Self, FaultProxy) {
        let database = PgDatabase::new();
        let (proxy, url) = proxy_to(database.url());
        let fixture = Self {
            store: Store::at(&url, settings).await.connected().await,
            observer: SqlSession::of(&database).await,
            database,
        };
        (fixture, proxy)
    }

    /// Starts to add a pet. It is in the queue, or was refused, when this returns.
    pub(crate) fn begin(&self, name: &str) -> BoxFuture<'static, AddResult> {
        let repository = Arc::clone(&self.store.repository);
        let name = name.to_owned();
        poll_once(async move { add(&repository, &name).await }.boxed())
    }

    /// Locks the table, and makes the writer wait for it.
    pub(crate) async fn block(&self) -> BoxFuture<'static, AddResult> {
        self.observer.lock().await;
        let first = self.begin("first");
        self.observer.wait_for_table_locks(1).await;
        first
    }

    /// Adds these pets in one batch.
    pub(crate) async fn add_together(&self, names: &[impl AsRef<str>]) -> Vec<AddResult> {
        let first = self.block().await;
        let batch: Vec<_> = names.iter().map(|name| self.begin(name.as_ref())).collect();
        self.observer.unlock().await;
        first.await.expect("added");
        join_all(batch).await
    }

    /// Replaces the trigger that runs this PL/pgSQL for each pet before it is stored.
    pub(crate) async fn trigger(&self, body: &str) {
        self.create_trigger(body, "TRIGGER spoil BEFORE INSERT ON pets")
            .await;
    }

    /// Replaces the trigger by one that runs when the transaction commits.
    pub(crate) async fn trigger_at_commit(&self, body: &str) {
        let trigger = "CONSTRAINT TRIGGER spoil AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED";
        self.create_trigger(body, trigger).await;
    }

    pub(crate) async fn create_trigger(&self, body: &str, trigger: &str) {
        let function = "CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql";
        let drop = "DROP TRIGGER IF EXISTS spoil ON pets";
        let trigger = format!("CREATE {trigger} FOR EACH ROW EXECUTE FUNCTION spoil()");
        self.observer
            .run(&format!(
                "{function} AS $$BEGIN {body}; RETURN NEW; END$$; {drop}; {trigger}"
            ))
            .await;
    }

    /// The names of the pets that the test added, in ascending order of id.
    pub(crate) async fn names(&self) -> Vec<String> {
        self.observer
            .column("SELECT name FROM pets WHERE name NOT IN ('Rex', 'first') ORDER BY id")
            .await
    }
}

/// Starts to find a pet. The read is in the queue when this returns.
pub(crate) fn begin_to_find(
    repository: &Arc<PgPetRepository>,
    id: i64,
) -> BoxFuture<'static, Result<Option<Pet>, StoreFailure>> {
    let repository = Arc::clone(repository);
    poll_once(async move { find(&repository, id).await }.boxed())
}

/// Starts a future.
pub(crate) fn poll_once<T: Send + 'static>(
    mut future: BoxFuture<'static, T>,
) -> BoxFuture<'static, T> {
    match (&mut future).now_or_never() {
        None => future,
        Some(result) => ready(result).boxed(),
    }
}
