//! A database that is there, and not as it should be.

use animal_store_adapters_postgres::{PostgresSettings, SchemaMode};
use animal_store_app::ports::{PetRepository, StorageError};
use animal_store_domain::PetStatus;
use animal_store_test_servers::PostgresServer;

use crate::{
    batches::Bench,
    calls::{
        AT_ONCE, Answered, PATIENCE, Unavailable, add, comes_to, comes_to_be_ready, each, find, not_ready, of_add,
        reason,
    },
    store::{Store, settings},
};

/// Everybody who reads this row is told where it is, and not what is in it.
async fn is_corrupt(bench: &Bench, row: &str, column: &str) {
    let id =
        bench.other.column(&format!("INSERT INTO pets (name, category_id, status) VALUES {row} RETURNING id")).await;
    let repository = &bench.store.repository;
    let found = find(repository, id[0].parse().expect("a number")).await.expect_err(row);
    let listed = repository.list(None, None, 10).await.expect_err(row);
    let of_status = repository.list(Some(PetStatus::Sold), None, 10).await;
    for error in [found, listed].into_iter().chain(of_status.err()) {
        let StorageError::Corrupt(cause) = error else { panic!("{row}: {error:?}") };
        let text = reason(&*cause);
        assert!(text.starts_with(&format!("table pets, column {column}, id {}: ", id[0])), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    // The others are not.
    assert!(find(repository, 1).await.expect("an answer").is_some());
    assert_eq!(of_add(&add(repository, "another").await), Answered);
    bench.other.run(&format!("DELETE FROM pets WHERE id = {}", id[0])).await;
    assert!(repository.list(None, None, 10).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_no_animal_is_reported_by_its_place() {
    let bench = Bench::new().await;
    is_corrupt(&bench, "(repeat('secret', 50), 1, NULL)", "name").await;
    is_corrupt(&bench, "(' ', 1, 3)", "name").await;
    is_corrupt(&bench, r"(E'secret\u0007', 1, 3)", "name").await;
    is_corrupt(&bench, "('', 1, 3)", "name").await;
    bench.other.run("ALTER TABLE pets DROP CONSTRAINT pets_status_known").await;
    is_corrupt(&bench, "('secret', 1, 9)", "status").await;
    is_corrupt(&bench, "('secret', 1, 0)", "status").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_table_the_storage_is_unavailable_until_there_is_one_again() {
    let Bench { store, other, database } = Bench::new().await;
    let definition = include_str!("../../migrations/0001_expand_create_pets/up.sql");
    comes_to(&store.repository, Answered, AT_ONCE).await;
    other.run("DROP TABLE pets").await;
    for _ in 0..10 {
        assert_eq!(each(&store.repository, AT_ONCE).await, [Unavailable; 3]);
    }
    let reason = not_ready(&store.storage).await.expect("it is not ready");
    assert!(reason.contains(r#"relation "pets" does not exist"#), "{reason}");
    // A new connection finds none either.
    let before = other.backends().await;
    other.terminate_backends().await;
    other.wait_for_the_end_of(&before).await;
    comes_to(&store.repository, Unavailable, AT_ONCE).await;
    other.run(definition).await;
    comes_to(&store.repository, Answered, PATIENCE).await;
    comes_to_be_ready(&store.storage).await;
    drop(database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_privilege_the_storage_is_unavailable_until_it_is_granted() {
    let server = PostgresServer::start();
    drop(Store::at(&server.url("postgres"), settings()).await);
    let sql = |sql| drop(server.sql("postgres", sql));
    sql("CREATE ROLE keeper LOGIN; GRANT SELECT ON __diesel_schema_migrations TO keeper");
    let url = server.url("postgres").replace("postgres@", "keeper@");
    let store = Store::at(&url, PostgresSettings { schema: SchemaMode::Check, ..settings() }).await;
    comes_to(&store.repository, Unavailable, AT_ONCE).await;
    let text = reason(&find(&store.repository, 1).await.expect_err("refused"));
    assert!(text.contains("permission denied for table pets"), "{text}");
    let text = reason(&add(&store.repository, "Rex").await.expect_err("refused"));
    assert!(text.contains("permission denied for"), "{text}");
    assert!(not_ready(&store.storage).await.expect("it is not ready").contains("permission denied for table pets"));

    sql("GRANT SELECT ON pets TO keeper");
    assert_eq!(each(&store.repository, AT_ONCE).await, [Answered, Answered, Unavailable]);
    sql("GRANT INSERT ON pets TO keeper; GRANT USAGE ON pets_id_seq TO keeper");
    assert_eq!(each(&store.repository, AT_ONCE).await, [Answered; 3]);
    comes_to_be_ready(&store.storage).await;
}
