//! Another store of keys in place of the one that is known, and changes by programs that write no marks.

use animal_store_adapter_kit::ApiKeySnapshot;
use animal_store_adapters_postgres::{PgApiKeyStore, api_key_store};
use animal_store_app::{
    ports::{ApiKeyStore, StoreFailure},
    test_support::key_changes::{add, revoke},
};
use animal_store_test_servers::PgDatabase;

use crate::{
    keys::{directory_of, is_accepted, new_keys},
    outcomes::wait_until,
    store::{endpoint, proxy_to, settings},
};

/// The tables of keys that a restore fills.
const TABLES: [&str; 4] = [
    "api_key_state",
    "api_key_marks",
    "api_keys",
    "api_key_tokens",
];
const EMPTY: &str = "TRUNCATE api_key_state, api_key_marks, api_keys, api_key_tokens, api_key_uses";

/// Saves a state of the store.
fn save(database: &PgDatabase, name: &str) {
    database.sql(&format!("CREATE SCHEMA {name}"));
    for table in TABLES {
        database.sql(&format!(
            "CREATE TABLE {name}.{table} AS TABLE public.{table}"
        ));
    }
}

fn fill(table: &str, name: &str) -> String {
    format!("INSERT INTO public.{table} SELECT * FROM {name}.{table}")
}

/// Restores a state in one transaction.
fn restore(database: &PgDatabase, name: &str) {
    let fills = TABLES.map(|table| fill(table, name)).join("; ");
    database.sql(&format!("BEGIN; {EMPTY}; {fills}; COMMIT"));
}

async fn add_keys(keys: &PgApiKeyStore, ids: &[&str]) {
    for id in ids {
        keys.change(add(id, id, None), "test").await.expect("added");
    }
}

async fn wait_for(directory: &ApiKeySnapshot, token: &str, expected: bool) {
    wait_until(token, async || {
        is_accepted(directory, token)
            .await
            .is_ok_and(|found| found == expected)
    })
    .await;
}

/// A database with the saved stores `before`, with the keys p1 to p3, and `empty`.
async fn two_stores() -> (PgApiKeyStore, PgDatabase) {
    let (keys, database) = new_keys().await;
    save(&database, "empty");
    add_keys(&keys, &["p1", "p2", "p3"]).await;
    save(&database, "before");
    restore(&database, "empty");
    (keys, database)
}

/// Its version is smaller, the same, or greater.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_replaced_at_once_has_only_its_own_keys() {
    for ids in [
        &["s1", "s2"][..],
        &["s1", "s2", "s3"],
        &["s1", "s2", "s3", "s4"],
    ] {
        let (keys, database) = two_stores().await;
        let directory = directory_of(&keys);
        add_keys(&keys, ids).await;
        for id in ids {
            wait_for(&directory, id, true).await;
        }
        restore(&database, "before");
        wait_for(&directory, "p1", true).await;
        for id in ids {
            assert!(!is_accepted(&directory, id).await.expect("found"), "{id}");
        }
        // Increments are read along the new history.
        keys.change(revoke("p2"), "test").await.expect("revoked");
        wait_for(&directory, "p2", false).await;
        assert!(is_accepted(&directory, "p3").await.expect("found"));
    }
}

/// A dump has the state before the keys, and jobs of one restore finish in any order. A directory that starts between
/// two steps believes nothing either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_being_restored_table_by_table_has_no_key_until_it_is_complete() {
    for order in [[0, 1, 2, 3], [1, 0, 3, 2], [0, 3, 2, 1], [2, 0, 1, 3]] {
        let (keys, database) = two_stores().await;
        let directory = directory_of(&keys);
        add_keys(&keys, &["s1"]).await;
        wait_for(&directory, "s1", true).await;
        // A dump creates the references at the end.
        database.sql("ALTER TABLE api_key_tokens DROP CONSTRAINT api_key_tokens_api_key_id_fkey");
        database.sql(EMPTY);
        let last_needed = order.iter().rposition(|table| *table != 1);
        for (step, table) in order.into_iter().enumerate() {
            database.sql(&fill(TABLES[table], "before"));
            if Some(step) < last_needed {
                wait_until("it fails", async || {
                    is_accepted(&directory, "s1").await.is_err()
                })
                .await;
                let started = directory_of(&keys);
                let found = is_accepted(&started, "p1").await;
                assert!(
                    matches!(found, Err(StoreFailure::Unavailable(_))),
                    "{order:?}, {step}: {found:?}"
                );
            }
        }
        wait_for(&directory, "p1", true).await;
        for (id, expected) in [("p2", true), ("p3", true), ("s1", false)] {
            let found = is_accepted(&directory, id).await.expect("found");
            assert_eq!(found, expected, "{order:?}: {id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_state_with_other_changes_that_were_made_unseen_replaces_all_keys() {
    for other in [&["other"][..], &["other", "more", "most"]] {
        let (keys, database) = new_keys().await;
        let (mut proxy, url) = proxy_to(database.url());
        let directory = directory_of(&api_key_store(endpoint(&url), settings()));
        add_keys(&keys, &["kept"]).await;
        save(&database, "before");
        add_keys(&keys, &["lost"]).await;
        wait_for(&directory, "lost", true).await;
        proxy.refuse();
        restore(&database, "before");
        add_keys(&keys, other).await;
        proxy.heal();
        wait_for(&directory, "other", true).await;
        for (id, expected) in [("kept", true), ("lost", false)] {
            let found = is_accepted(&directory, id).await.expect("found");
            assert_eq!(found, expected, "{id}");
        }
    }
}

/// Such a program changes the version only. It may also delete rows of keys that it does not change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_change_by_an_older_program_all_keys_are_read() {
    let (keys, database) = new_keys().await;
    let directory = directory_of(&keys);
    add_keys(&keys, &["a", "b", "c"]).await;
    for id in ["a", "b", "c"] {
        wait_for(&directory, id, true).await;
    }
    let older = |id: &str, also: &str| {
        database.sql(&format!(
            "BEGIN; UPDATE api_key_state SET version = version + 1;
            DELETE FROM api_key_tokens WHERE api_key_id IN ('{id}', '{also}');
            UPDATE api_keys SET version = state.version FROM api_key_state AS state WHERE api_keys.id = '{id}';
            COMMIT"
        ));
    };
    older("a", "");
    wait_for(&directory, "a", false).await;
    older("b", "c");
    add_keys(&keys, &["d"]).await;
    wait_for(&directory, "d", true).await;
    for id in ["a", "b", "c"] {
        assert!(!is_accepted(&directory, id).await.expect("found"), "{id}");
    }
    assert_eq!(
        database.sql("SELECT keys, tokens, marked_version = version FROM api_key_state"),
        "4|1|t"
    );
}

/// The permissions before the migration, in a rolling upgrade.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_permission_on_the_marks_changes_are_seen() {
    let (keys, database) = new_keys().await;
    let user = database.user();
    database.sql(&format!(
        "GRANT SELECT ON api_keys, api_key_tokens, api_key_state TO {}",
        user.name
    ));
    let directory = directory_of(&api_key_store(endpoint(&user.url), settings()));
    add_keys(&keys, &["a", "b"]).await;
    wait_for(&directory, "b", true).await;
    keys.change(revoke("a"), "test").await.expect("revoked");
    wait_for(&directory, "a", false).await;
    assert!(is_accepted(&directory, "b").await.expect("found"));
}
