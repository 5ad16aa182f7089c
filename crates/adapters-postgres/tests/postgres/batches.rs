//! Several adds in one batch, which nothing but the writer decides on: one add waits for a lock in the server, and the
//! others for the writer.

use std::sync::Arc;

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::ports::AddPetError;
use animal_store_domain::Pet;
use animal_store_test_servers::PgDatabase;
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};

use crate::{
    calls::{add, comes_to_be_ready},
    session::Session,
    store::{Store, settings},
};

pub(crate) type Added = Result<Pet, AddPetError>;
pub(crate) type Adding = BoxFuture<'static, Added>;

/// A storage that has opened its connections, and a session beside it.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) other: Session,
    pub(crate) database: PgDatabase,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: PostgresSettings) -> Self {
        let database = PgDatabase::new();
        let store = Store::at(database.url(), settings).await;
        add(&store.repository, "Rex").await.expect("an animal");
        comes_to_be_ready(&store.storage).await;
        let other = Session::of(&database).await;
        Self { store, other, database }
    }

    /// Begins to add an animal. It is in the queue, or has been refused, when this returns.
    pub(crate) fn begin(&self, name: impl Into<String>) -> Adding {
        begin(&self.store.repository, name.into())
    }

    /// Locks the table, and has the writer wait for it.
    pub(crate) async fn block(&self) -> Adding {
        self.other.lock().await;
        let first = self.begin("first");
        self.other.wait_for_waiting(1).await;
        first
    }

    /// Adds these in one batch.
    pub(crate) async fn add_together(&self, names: &[&str]) -> Vec<Added> {
        let first = self.block().await;
        let batch: Vec<_> = names.iter().map(|&name| self.begin(name)).collect();
        self.other.unlock().await;
        first.await.expect("an animal");
        join_all(batch).await
    }

    /// Runs this for each row before it is stored, in PL/pgSQL, and nothing that was to be run before.
    pub(crate) async fn trigger(&self, body: &str) {
        let function = "CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql";
        let trigger = "CREATE TRIGGER spoil BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION spoil()";
        let drop = "DROP TRIGGER IF EXISTS spoil ON pets";
        self.other.run(&format!("{function} AS $$BEGIN {body}; RETURN NEW; END$$; {drop}; {trigger}")).await;
    }

    /// Runs this for each row when the transaction commits.
    pub(crate) async fn trigger_at_commit(&self, body: &str) {
        let function = "CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql";
        let trigger = "CREATE CONSTRAINT TRIGGER spoil AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED";
        let drop = "DROP TRIGGER IF EXISTS spoil ON pets";
        let trigger = format!("{trigger} FOR EACH ROW EXECUTE FUNCTION spoil()");
        self.other.run(&format!("{function} AS $$BEGIN {body}; RETURN NULL; END$$; {drop}; {trigger}")).await;
    }

    /// In the order of their ids, without those that every bench has.
    pub(crate) async fn names(&self) -> Vec<String> {
        self.other.column("SELECT name FROM pets WHERE name NOT IN ('Rex', 'first') ORDER BY id").await
    }
}

fn begin(repository: &Arc<PgPetRepository>, name: String) -> Adding {
    let repository = Arc::clone(repository);
    let mut adding = async move { add(&repository, &name).await }.boxed();
    match (&mut adding).now_or_never() {
        None => adding,
        Some(added) => std::future::ready(added).boxed(),
    }
}
