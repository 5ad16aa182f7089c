//! Sessions that cannot run a statement any more are replaced, and no request fails.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use animal_store_adapters_postgres::PgPetRepository;
use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use animal_store_test_servers::{PgBouncer, PgDatabase};
use futures_util::future::join_all;

use crate::{
    fixture::Fixture,
    keyed::{New, Replayed, add_keyed},
    outcomes::{Success, add, find, reason, wait_for_outcome},
    sql_session::SqlSession,
    store::{check, endpoint, migrations, parts, start_storage},
};

/// Makes the names of pets unique.
static NAMES: AtomicUsize = AtomicUsize::new(0);

/// Executes every statement of the adapter.
async fn every_request_succeeds(repository: &Arc<PgPetRepository>, when: &str) {
    for _ in 0..5 {
        let reads = (0..8).map(|_| async {
            for status in [None, Some(PetStatus::Sold)] {
                let listed = repository.list(status, None, 10).await;
                listed.unwrap_or_else(|error| panic!("{when}: {}", reason(&error)));
            }
            let found = find(repository, 1).await;
            found.unwrap_or_else(|error| panic!("{when}: {}", reason(&error)));
        });
        join_all(reads).await;
        let name = format!("{when} {}", NAMES.fetch_add(1, Ordering::Relaxed));
        let added = add(repository, &name).await;
        added.unwrap_or_else(|error| panic!("{when}: {}", reason(&error)));
        let first = add_keyed(repository, &name).await;
        assert_eq!(first, New(first.id()), "{when}");
        let again = add_keyed(repository, &name).await;
        assert_eq!(again, Replayed(first.id()), "{when}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_change_of_the_schema_every_request_succeeds() {
    Fixture::in_both_modes(async |fixture| {
        every_request_succeeds(&fixture.store.repository, "before").await;
        for change in [
            "ALTER TABLE pets ALTER COLUMN name TYPE text COLLATE \"C\"",
            "ALTER TABLE pets ALTER COLUMN name TYPE varchar(300)",
            "ALTER TABLE pets ALTER COLUMN name TYPE text",
            "ALTER TABLE pets ADD COLUMN born date",
            "ALTER TABLE pets DROP COLUMN born",
            "ALTER TABLE pets RENAME TO animals; ALTER TABLE animals RENAME TO pets",
            "DROP INDEX pets_status_id",
            "CREATE INDEX pets_status_id ON pets (status, id)",
            "REINDEX TABLE pets",
            "ALTER TABLE idempotency_keys ALTER COLUMN pet_digest SET STORAGE EXTERNAL",
        ] {
            fixture.observer.run(change).await;
            every_request_succeeds(&fixture.store.repository, change).await;
        }
    })
    .await;
}

/// A session finds its tables by the search path of its start.
#[tokio::test(flavor = "multi_thread")]
async fn after_the_tables_have_moved_to_another_schema_every_request_succeeds() {
    let fixture = Fixture::new().await;
    every_request_succeeds(&fixture.store.repository, "before").await;
    let database = fixture.database.name();
    fixture
        .observer
        .run(&format!(
            "CREATE SCHEMA shop; ALTER DATABASE {database} SET search_path = shop, public;
            SET search_path = shop, public;
            ALTER TABLE pets SET SCHEMA shop; ALTER TABLE idempotency_keys SET SCHEMA shop"
        ))
        .await;
    every_request_succeeds(&fixture.store.repository, "moved").await;
}

/// All sessions use the only server connection of a pool, and another client of the pool takes their statements.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_pooler_has_taken_the_statements_of_a_session_every_request_succeeds() {
    let database = PgDatabase::new();
    migrations(database.url()).run().await.expect("migrated");
    let bouncer = PgBouncer::start(parts(database.url()).1, "transaction", 1);
    let through = bouncer.url(database.name());
    let started = start_storage(endpoint(&through), endpoint(database.url()), check()).await;
    let (storage, _writer) = started.expect("a storage");
    let repository = Arc::new(storage.repository());
    wait_for_outcome(&repository, Success).await;
    let pooled = SqlSession::at(&through).await;
    for taken in ["DEALLOCATE ALL", "DISCARD ALL", "DEALLOCATE ALL"] {
        every_request_succeeds(&repository, "before").await;
        pooled.run(taken).await;
        every_request_succeeds(&repository, taken).await;
    }
}

/// Each create takes the statements of its session, so that the next batch is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_creates_that_a_session_refuses_is_stored_once_in_order() {
    Fixture::in_both_modes(async |fixture| {
        let names: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let first = fixture.block().await;
        let batch: Vec<_> = names.iter().map(|&name| fixture.begin(name)).collect();
        let function = "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql";
        let trigger = "CREATE TRIGGER forget BEFORE INSERT ON pets EXECUTE FUNCTION forget()";
        let body = "BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN NULL; END";
        fixture
            .observer
            .run(&format!("{function} AS $${body}$$; {trigger}"))
            .await;
        fixture.observer.unlock().await;
        first.await.expect("added");
        for added in join_all(batch).await {
            added.expect("added");
        }
        assert_eq!(fixture.names().await, names);
    })
    .await;
}
