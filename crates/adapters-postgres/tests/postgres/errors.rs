//! A database with a wrong row, without its table, or without privileges.

use animal_store_adapters_postgres::{Migrations, PostgresSettings, SchemaMode};
use animal_store_app::ports::{PetRepository, StoreFailure};
use animal_store_domain::PetStatus;
use animal_store_test_servers::PostgresServer;

use crate::{
    fixture::Fixture,
    outcomes::{
        PROMPT, Success, TEST_TIMEOUT, Unavailable, add, add_outcome, find, list_find_add, not_ready, reason,
        wait_for_outcome, wait_until_ready,
    },
    store::{Store, endpoint, settings},
};

/// Every read of this row reports its place, but not its contents; other rows are not affected.
async fn is_reported(fixture: &Fixture, row: &str, column: &str) {
    let id = fixture
        .observer
        .column(&format!("INSERT INTO pets (name, category_id, status) VALUES {row} RETURNING id"))
        .await;
    let repository = &fixture.store.repository;
    let found = find(repository, id[0].parse().expect("a number")).await.expect_err(row);
    let listed = repository.list(None, None, 10).await.expect_err(row);
    let of_status = repository.list(Some(PetStatus::Sold), None, 10).await;
    for error in [found, listed].into_iter().chain(of_status.err()) {
        let StoreFailure::Corrupt(cause) = error else { panic!("{row}: {error:?}") };
        let text = reason(&*cause);
        assert!(text.starts_with(&format!("table pets, column {column}, id {}: ", id[0])), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    assert!(find(repository, 1).await.expect("a response").is_some());
    assert_eq!(add_outcome(&add(repository, "another").await), Success);
    fixture.observer.run(&format!("DELETE FROM pets WHERE id = {}", id[0])).await;
    assert!(repository.list(None, None, 10).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_row_is_reported_by_its_place() {
    let fixture = Fixture::new().await;
    is_reported(&fixture, "(repeat('secret', 50), 1, NULL)", "name").await;
    is_reported(&fixture, r"(E'secret\u0007', 1, 3)", "name").await;
    fixture.observer.run("ALTER TABLE pets DROP CONSTRAINT pets_status_known").await;
    is_reported(&fixture, "('secret', 1, 9)", "status").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_tables_the_storage_is_unavailable_until_they_are_created_again() {
    let Fixture { store, observer, database } = Fixture::new().await;
    let definition = include_str!("../../migrations/0001-expand_create_tables/up.sql");
    wait_for_outcome(&store.repository, Success, PROMPT).await;
    observer.run("DROP TABLE pets, idempotency_keys").await;
    assert_eq!(list_find_add(&store.repository, PROMPT).await, [Unavailable; 3]);
    let reason = not_ready(&store.storage).await.expect("not ready");
    assert!(reason.contains(r#"relation "pets" does not exist"#), "{reason}");
    // New connections find no tables either.
    observer.wait_until_ended(&observer.terminate_backends().await).await;
    wait_for_outcome(&store.repository, Unavailable, PROMPT).await;
    observer.run(definition).await;
    wait_for_outcome(&store.repository, Success, TEST_TIMEOUT).await;
    wait_until_ready(&store.storage).await;
    drop(database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_privilege_the_storage_is_unavailable_until_it_is_granted() {
    let server = PostgresServer::start();
    drop(Store::at(&server.url("postgres"), settings()).await);
    let sql = |sql| drop(server.sql("postgres", sql));
    sql("CREATE ROLE keeper LOGIN");
    let url = server.url("postgres").replace("postgres@", "keeper@");
    let error = Migrations::new(endpoint(&url), TEST_TIMEOUT).pending().await.expect_err("refused").to_string();
    assert!(
        error.starts_with("keeper@") && error.ends_with(" table __diesel_schema_migrations (SQLSTATE 42501)"),
        "{error}"
    );
    sql("GRANT SELECT ON __diesel_schema_migrations TO keeper");
    let store = Store::at(&url, PostgresSettings { schema: SchemaMode::Check, ..settings() }).await;
    wait_for_outcome(&store.repository, Unavailable, PROMPT).await;
    let login = url.strip_prefix("postgres://").expect("a scheme");
    let text = reason(&find(&store.repository, 1).await.expect_err("refused"));
    assert!(text.ends_with(&format!(": {login}: permission denied for table pets")), "{text}");
    let text = reason(&add(&store.repository, "Rex").await.expect_err("refused"));
    assert!(text.ends_with(&format!(": {login}: permission denied for table pets (SQLSTATE 42501)")), "{text}");
    let text = not_ready(&store.storage).await.expect("not ready");
    assert_eq!(text, format!("{login}: permission denied for table pets (SQLSTATE 42501)"));

    sql("GRANT SELECT ON pets TO keeper");
    assert_eq!(list_find_add(&store.repository, PROMPT).await, [Success, Success, Unavailable]);
    sql("GRANT INSERT ON pets TO keeper; GRANT USAGE ON pets_id_seq TO keeper");
    assert_eq!(list_find_add(&store.repository, PROMPT).await, [Success; 3]);
    wait_until_ready(&store.storage).await;
}
