//! A storage whose batches the test controls: while one add waits for a lock in the server, others wait for the writer.

use std::ops::Deref;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::{FaultProxy, PgDatabase};
use futures_util::future::{BoxFuture, join_all};

use crate::{
    outcomes::{AddResult, Keyed},
    settings::{in_both_modes, settings},
    sql_session::SqlSession,
    store::{Store, proxy_to, start_storage},
};

/// Pets of a batch of which one is refused.
pub(crate) const NAMES: [&str; 7] = ["a", "b", "bad", "c", "d", "e", "f"];

/// The server's processes that hold a pet.
pub(crate) const HELD: &str =
    "pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

/// PL/pgSQL that refuses the bad pet.
pub(crate) fn raise(code: &str, message: &str) -> String {
    format!("IF NEW.name = 'bad' THEN RAISE '{message}' USING ERRCODE = '{code}'; END IF")
}

/// A storage that has opened its connections, through a proxy, and a session beside it. Both have one database.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) proxy: FaultProxy,
    pub(crate) observer: SqlSession,
    pub(crate) database: PgDatabase,
}

/// A fixture is used like its storage.
impl Deref for Fixture {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: PostgresSettings) -> Self {
        let database = PgDatabase::new();
        let (proxy, url) = proxy_to(database.url());
        let store = start_storage(&url, database.url(), settings).await;
        let store = store.expect("a storage");
        store.wait_until_connected().await;
        store.add_keyed_until_stored("Rex").await;
        let observer = SqlSession::of(&database).await;
        // Two for reads, two for creates, one for readiness. That of the migrations ends.
        observer.wait_for_backends(5).await;
        Self {
            store,
            proxy,
            observer,
            database,
        }
    }

    /// Runs a test without and with transaction pooling, at the same time.
    pub(crate) async fn in_both_modes(test: impl AsyncFn(Self)) {
        Self::in_both_modes_of(&settings(), test).await;
    }

    /// As [`in_both_modes`](Self::in_both_modes), with other settings.
    pub(crate) async fn in_both_modes_of(settings: &PostgresSettings, test: impl AsyncFn(Self)) {
        in_both_modes(settings, async |settings| {
            test(Self::with(settings).await).await;
        })
        .await;
    }

    /// Adds these pets in one batch.
    pub(crate) async fn add_together(&self, names: &[impl AsRef<str>]) -> Vec<AddResult> {
        self.together(names, |name| self.add(name)).await
    }

    /// Adds these pets with their keys in one batch.
    pub(crate) async fn add_keyed_together(&self, names: &[impl AsRef<str>]) -> Vec<Keyed> {
        self.together(names, |name| self.add_keyed(name)).await
    }

    async fn together<T>(
        &self,
        names: &[impl AsRef<str>],
        add: impl Fn(&str) -> BoxFuture<'static, T>,
    ) -> Vec<T> {
        let first = self.observer.block(|| add("first")).await;
        let batch: Vec<_> = names.iter().map(|name| add(name.as_ref())).collect();
        self.observer.unlock().await;
        first.await;
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
        let body = format!("$$BEGIN {body}; RETURN NEW; END$$");
        self.observer
            .run(&format!("{function} AS {body}; {drop}; {trigger}"))
            .await;
    }

    /// Begins an add that is held in the server, until [`release`](Self::release). Unlike the wait for a lock, that has
    /// the whole timeout of a statement.
    pub(crate) async fn hold(&self, name: &str) -> BoxFuture<'static, Keyed> {
        let gate = "CREATE TABLE IF NOT EXISTS gate (); INSERT INTO gate DEFAULT VALUES";
        self.observer.run(gate).await;
        let is_held = format!("NEW.name = '{name}' AND EXISTS (SELECT FROM gate)");
        let body = format!("WHILE {is_held} LOOP PERFORM pg_sleep(0.01); END LOOP");
        self.trigger(&body).await;
        let add = self.add_keyed(name);
        self.observer.wait_for_rows(HELD, 1).await;
        add
    }

    pub(crate) async fn release(&self) {
        self.observer.run("DELETE FROM gate").await;
    }

    /// The names of the pets that the test added, in ascending order of id.
    pub(crate) async fn names(&self) -> Vec<String> {
        self.observer
            .column("SELECT name FROM pets WHERE name NOT IN ('Rex', 'first') ORDER BY id")
            .await
    }
}
