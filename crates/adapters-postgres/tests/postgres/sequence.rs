//! A sequence that is behind the greatest id, as after logical replication or a restore of data alone.

use crate::{keys::new_keys, prelude::*};

const AHEAD: &str = "INSERT INTO pets (id, name, category_id) VALUES (1000, 'copied', 1)";

async fn advance(database: &PgDatabase) -> bool {
    let advanced = migrations(database.url()).advance_sequences().await;
    !advanced.expect("they are set").is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_is_behind_is_set_to_the_greatest_id() {
    let database = migrated().await;
    assert!(!advance(&database).await, "there is no pet");
    database.sql(AHEAD);
    assert!(advance(&database).await);
    assert!(!advance(&database).await);
    let store = Store::at(database.url(), settings()).await;
    assert_eq!(store.adds_and_finds().await.id().get(), 1001);
}

/// As after a restore of data alone.
#[tokio::test(flavor = "multi_thread")]
async fn the_sequence_of_the_changes_of_keys_is_set_as_well() {
    let (keys, database) = new_keys().await;
    keys.add(&["a", "b"]).await;
    let behind = "SELECT setval('api_key_changes_id_seq', 1, false)";
    database.sql(behind);
    let advanced = migrations(database.url()).advance_sequences().await;
    assert_eq!(advanced.expect("set"), ["api_key_changes"]);
    assert!(!advance(&database).await);
    keys.add(&["c"]).await;
    assert_eq!(keys.audit_log().await.expect("log").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_never_moves_backwards() {
    let database = migrated().await;
    database.sql(AHEAD);
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
        database.sql(position);
        advance(&database).await;
        let taken = database.sql("SELECT nextval('pets_id_seq')");
        assert_eq!(taken, next, "{position}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_in_flight_and_later_ones_succeed_while_the_sequence_is_set() {
    let fixture = Fixture::new().await;
    let first = fixture.observer.block(|| fixture.add("first")).await;
    let waiting = fixture.add("waiting");
    let migrations = migrations(fixture.database.url());
    let advanced = tokio::spawn(async move { migrations.advance_sequences().await });
    fixture.observer.run(AHEAD).await;
    fixture.observer.unlock().await;
    first.await.expect("it had its id before");
    advanced.await.expect("no panic").expect("it is set");
    // It may be before or after the sequence was set.
    drop(waiting.await);
    advance(&fixture.database).await;
    let added = fixture.add("later").await.expect("added");
    assert!(added.id().get() > 1000, "{added:?}");
}

/// The documented permissions, without those on API keys that are elsewhere. The user owns neither table nor sequence.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_set_a_sequence_is_told_so_only_if_it_is_behind() {
    let database = migrated().await;
    let user = user_with(
        &database,
        &["SELECT, INSERT ON pets", "USAGE ON pets_id_seq"],
    );
    let migrations = migrations(&user.url);
    let advanced = migrations.advance_sequences().await;
    assert_eq!(advanced.expect("none is behind"), [""; 0]);
    database.sql(AHEAD);
    let refused = migrations.advance_sequences().await;
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
    assert_eq!(add_outcome(&store.add("Rex").await), Unavailable);
    assert_eq!(add_outcome(&store.add("Rex").await), Success);
}
