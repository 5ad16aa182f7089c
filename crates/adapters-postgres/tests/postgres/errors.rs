//! A database without its tables or without privileges, or one that has become read-only.

use animal_store_adapters_postgres::Migrations;
use animal_store_test_servers::PostgresServer;

use crate::{
    fixture::Fixture,
    outcomes::{
        Success, TEST_TIMEOUT, Unavailable, add, find, list_find_add, not_ready, reason,
        wait_for_outcome, wait_until_ready,
    },
    store::{Store, check, endpoint, settings},
};

#[tokio::test(flavor = "multi_thread")]
async fn without_its_tables_the_storage_is_unavailable_until_they_are_created_again() {
    let Fixture {
        store,
        observer,
        database: _database,
    } = Fixture::new().await;
    let definition = include_str!("../../migrations/0001-expand_create_tables/up.sql");
    wait_for_outcome(&store.repository, Success).await;
    observer.run("DROP TABLE pets, idempotency_keys").await;
    assert_eq!(list_find_add(&store.repository).await, [Unavailable; 3]);
    let reason = not_ready(&store.storage).await.expect("not ready");
    assert!(
        reason.contains(r#"relation "pets" does not exist"#),
        "{reason}"
    );
    // New connections find no tables either.
    observer
        .wait_until_ended(&observer.terminate_backends().await)
        .await;
    wait_for_outcome(&store.repository, Unavailable).await;
    observer.run(definition).await;
    wait_for_outcome(&store.repository, Success).await;
    wait_until_ready(&store.storage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_privilege_the_storage_is_unavailable_until_it_is_granted() {
    let server = PostgresServer::start();
    drop(Store::at(&server.url("postgres"), settings()).await);
    let sql = |sql| drop(server.sql("postgres", sql));
    sql("CREATE ROLE keeper LOGIN");
    let url = server.url("postgres").replace("postgres@", "keeper@");
    let error = Migrations::new(endpoint(&url), TEST_TIMEOUT)
        .pending()
        .await
        .expect_err("refused")
        .to_string();
    assert!(
        error.starts_with("keeper@")
            && error.ends_with(" table __diesel_schema_migrations (SQLSTATE 42501)"),
        "{error}"
    );
    sql("GRANT SELECT ON __diesel_schema_migrations TO keeper");
    let store = Store::at(&url, check()).await;
    wait_for_outcome(&store.repository, Unavailable).await;
    let login = url.strip_prefix("postgres://").expect("a scheme");
    for text in [
        reason(&find(&store.repository, 1).await.expect_err("refused")),
        reason(&add(&store.repository, "Rex").await.expect_err("refused")),
    ] {
        assert!(
            text.ends_with(&format!(
                ": {login}: permission denied for table pets (SQLSTATE 42501)"
            )),
            "{text}"
        );
    }
    let text = not_ready(&store.storage).await.expect("not ready");
    assert_eq!(
        text,
        format!("{login}: permission denied for table pets (SQLSTATE 42501)")
    );

    sql("GRANT SELECT ON pets TO keeper");
    assert_eq!(
        list_find_add(&store.repository).await,
        [Success, Success, Unavailable]
    );
    sql("GRANT INSERT ON pets TO keeper; GRANT USAGE ON pets_id_seq TO keeper");
    assert_eq!(list_find_add(&store.repository).await, [Success; 3]);
    wait_until_ready(&store.storage).await;
}
