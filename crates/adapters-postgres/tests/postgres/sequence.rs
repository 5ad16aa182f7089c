//! A sequence that is behind the greatest id, as after logical replication or a restore of data alone.

use animal_store_test_servers::PgDatabase;

use crate::{
    fixture::Fixture,
    outcomes::{Success, Unavailable, add, add_outcome, adds_and_finds},
    store::{Store, migrations, settings},
};

const AHEAD: &str = "INSERT INTO pets (id, name, category_id) VALUES (1000, 'copied', 1)";

async fn migrated() -> PgDatabase {
    let database = PgDatabase::new();
    migrations(database.url()).run().await.expect("migrated");
    database
}

async fn advance(database: &PgDatabase) -> bool {
    let advanced = migrations(database.url()).advance_sequence().await;
    advanced.expect("it is set")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_is_behind_is_set_to_the_greatest_id() {
    let database = migrated().await;
    assert!(!advance(&database).await, "there is no pet");
    database.sql(AHEAD);
    assert!(advance(&database).await);
    assert!(!advance(&database).await);
    let store = Store::at(database.url(), settings()).await;
    assert_eq!(adds_and_finds(&store.repository).await.id().get(), 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_never_moves_backwards() {
    for (position, next) in [
        ("SELECT setval('pets_id_seq', 2000)", "2001"),
        ("SELECT setval('pets_id_seq', 1000)", "1001"),
        // It was set and not used since.
        ("SELECT setval('pets_id_seq', 2000, false)", "2001"),
        ("ALTER SEQUENCE pets_id_seq RESTART WITH 2000", "2001"),
        // Ids that sessions have taken and not used.
        (
            "ALTER SEQUENCE pets_id_seq CACHE 50 RESTART WITH 2000; SELECT nextval('pets_id_seq')",
            "2050",
        ),
    ] {
        let database = migrated().await;
        database.sql(AHEAD);
        database.sql(position);
        advance(&database).await;
        assert_eq!(
            database.sql("SELECT nextval('pets_id_seq')"),
            next,
            "{position}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_in_flight_and_later_ones_succeed_while_the_sequence_is_set() {
    let fixture = Fixture::new().await;
    let first = fixture.block().await;
    let waiting = fixture.begin("waiting");
    let migrations = migrations(fixture.database.url());
    let advanced = tokio::spawn(async move { migrations.advance_sequence().await });
    fixture.observer.run(AHEAD).await;
    fixture.observer.unlock().await;
    first.await.expect("it had its id before");
    advanced.await.expect("no panic").expect("it is set");
    // It may be before or after the sequence was set.
    drop(waiting.await);
    advance(&fixture.database).await;
    let added = add(&fixture.store.repository, "later")
        .await
        .expect("added");
    assert!(added.id().get() > 1000, "{added:?}");
}

/// It owns neither the table nor the sequence.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_privilege_is_told_what_is_missing() {
    let database = migrated().await;
    database.sql(AHEAD);
    let user = database.user();
    database.sql(&format!(
        "GRANT SELECT, INSERT ON pets TO {0}; GRANT USAGE ON pets_id_seq TO {0}",
        user.name
    ));
    let refused = migrations(&user.url).advance_sequence().await;
    let reason = refused.expect_err("refused").to_string();
    assert!(reason.contains("permission denied"), "{reason}");
    assert_eq!(database.sql("SELECT last_value FROM pets_id_seq"), "1");
}

/// A start does not set it: its user may not own the table.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_leaves_the_sequence_as_it_is() {
    let database = migrated().await;
    database.sql("INSERT INTO pets (id, name, category_id) VALUES (1, 'copied', 1)");
    let store = Store::at(database.url(), settings()).await;
    let added = add(&store.repository, "Rex").await;
    assert_eq!(add_outcome(&added), Unavailable);
    let added = add(&store.repository, "Rex").await;
    assert_eq!(add_outcome(&added), Success);
}
