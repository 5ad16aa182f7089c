//! A database without its tables or without privileges.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn without_its_tables_the_storage_is_unavailable_until_they_are_created_again() {
    let fixture = Fixture::new().await;
    let observer = &fixture.observer;
    let definition = include_str!("../../migrations/0001-expand_create_tables/up.sql");
    observer.run("DROP TABLE pets, idempotency_keys").await;
    assert_eq!(fixture.list_find_add().await, [Unavailable; 3]);
    let reason = fixture.not_ready().await.expect("not ready");
    let missing = r#"relation "pets" does not exist"#;
    assert!(reason.contains(missing), "{reason}");
    // New connections find no tables either.
    observer.end_backends().await;
    fixture.wait_for(Unavailable).await;
    observer.run(definition).await;
    fixture.wait_until_it_works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_privilege_the_storage_is_unavailable_until_it_is_granted() {
    let database = migrated().await;
    let user = database.user();
    let grant = |privilege| database.sql(&format!("GRANT {privilege} TO {}", user.name));
    let login = user.url.strip_prefix("postgres://").expect("a scheme");
    let denied = format!("{login}: permission denied for table pets (SQLSTATE 42501)");
    let refused = migrations(&user.url).pending().await;
    let text = refused.expect_err("refused").to_string();
    assert!(text.starts_with(login), "{text}");
    let table = " table __diesel_schema_migrations (SQLSTATE 42501)";
    assert!(text.ends_with(table), "{text}");

    grant("SELECT ON __diesel_schema_migrations");
    let store = Store::at(&user.url, check()).await;
    store.wait_for(Unavailable).await;
    for text in [
        reason(&store.find(1).await.expect_err("refused")),
        reason(&store.add("Rex").await.expect_err("refused")),
    ] {
        assert!(text.ends_with(&format!(": {denied}")), "{text}");
    }
    assert_eq!(store.not_ready().await, Some(denied));

    grant("SELECT ON pets");
    let outcomes = store.list_find_add().await;
    assert_eq!(outcomes, [Success, Success, Unavailable]);
    grant("INSERT ON pets");
    grant("USAGE ON pets_id_seq");
    assert_eq!(store.list_find_add().await, [Success; 3]);
    store.wait_until_ready().await;
}
