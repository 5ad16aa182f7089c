//! Sessions that cannot run a statement any more are replaced, and no request fails.

use std::{
    fmt::Debug,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{explain::trap, pooler::Pooled, prelude::*};

/// Makes the names of pets unique.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Executes every statement of the adapter.
async fn every_request_succeeds(store: &Store, when: &str) {
    for _ in 0..5 {
        let mut reads = Vec::new();
        for _ in 0..8 {
            reads.push(store.list(None, 0, 10));
            reads.push(store.list(Some(Sold), 0, 10));
            reads.push(store.find(1).map_ok(Vec::from_iter).boxed());
        }
        for read in join_all(reads).await {
            succeeds(&read, when);
        }
        let name = format!("{when} {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        succeeds(&store.add(&name).await, when);
        let first = store.add_keyed(&name).await;
        assert_eq!(first, New(first.id()), "{when}");
        let again = store.add_keyed(&name).await;
        assert_eq!(again, Replayed(first.id()), "{when}");
    }
}

#[track_caller]
fn succeeds<T: Debug, E: Debug>(result: &Result<T, E>, when: &str) {
    assert!(result.is_ok(), "{when}: {result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_change_or_a_move_of_the_tables_every_request_succeeds() {
    Fixture::in_both_modes(async |fixture| {
        every_request_succeeds(&fixture, "before").await;
        // A session finds its tables by the search path of its start.
        let database = fixture.database.name();
        let moved = format!(
            "CREATE SCHEMA shop; ALTER DATABASE {database} SET search_path = shop, public; \
             SET search_path = shop, public; \
             ALTER TABLE pets SET SCHEMA shop; ALTER TABLE idempotency_keys SET SCHEMA shop"
        );
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
            &moved,
        ] {
            fixture.observer.run(change).await;
            every_request_succeeds(&fixture, change).await;
        }
    })
    .await;
}

/// All sessions use the only server connection of a pool, and another client of the pool takes their statements.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_pooler_has_taken_the_statements_of_a_session_every_request_succeeds() {
    let pooled = Pooled::with(1, settings()).await;
    pooled.wait_for(Success).await;
    let client = SqlSession::at(&pooled.url()).await;
    for taken in ["DEALLOCATE ALL", "DISCARD ALL", "DEALLOCATE ALL"] {
        every_request_succeeds(&pooled, "before").await;
        client.run(taken).await;
        every_request_succeeds(&pooled, taken).await;
    }
}

/// Sets an hour for each timeout of sessions, and the strictest isolation level.
const SET: &str = "DO $$ DECLARE change text; BEGIN
    FOR change IN SELECT format('ALTER DATABASE %I SET %I = %L', current_database(), name, value)
        FROM (VALUES ('statement_timeout', '1h'), ('lock_timeout', '1h'), ('idle_session_timeout', '1h'),
            ('idle_in_transaction_session_timeout', '1h'), ('transaction_timeout', '1h'),
            ('default_transaction_isolation', 'serializable')) AS setting (name, value)
        WHERE current_setting(name, true) IS NOT NULL
    LOOP EXECUTE change; END LOOP;
END $$";

/// Fails with the names of what [`SET`] has set for this statement.
const REPORT: &str =
    "CREATE OR REPLACE FUNCTION trap.report() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    RAISE 'of the database: %.', (SELECT string_agg(name, ' ') FROM pg_settings
        WHERE setting = '3600000' OR (name, setting) = ('transaction_isolation', 'serializable'));
END $$";

/// Behind a pooler, a session is that of the pooler. Those of keys are replaced after they have ended.
#[tokio::test(flavor = "multi_thread")]
async fn timeouts_of_statements_and_the_isolation_level_of_a_database_apply_to_no_transaction() {
    in_both_modes(&settings(), async |settings| {
        let is_pooling = settings.transaction_pooling;
        let database = migrated().await;
        let traps = ["pets", "api_keys", "api_key_tokens"].map(trap).concat();
        database.sql(&format!("{traps} {REPORT}; {SET}"));
        let url = with_option(database.url(), "options=-c%20search_path%3Dtrap,public");
        let keys = api_key_store(endpoint(&url), settings.clone());
        let keys = keys.list().await.expect_err("trapped");
        let store = Store::at(&url, settings).await;
        let added = store.add("Rex").await.expect_err("trapped");
        let listed = store.list(None, 0, 1).await.expect_err("trapped");
        for error in [reason(&keys), reason(&added), reason(&listed)] {
            let found = error.split_once("of the database: ").expect(&error).1;
            for name in ["lock", "statement", "idle_in_transaction", "isolation"] {
                assert!(!found.contains(name), "{error}");
            }
        }
        if !is_pooling {
            assert!(reason(&added).contains("of the database: <NULL>."));
        }
    })
    .await;
}

/// Each create takes the statements of its session, so that the next batch is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_creates_that_a_session_refuses_is_stored_once_in_order() {
    Fixture::in_both_modes(async |fixture| {
        let observer = &fixture.observer;
        let names: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let first = observer.block(|| fixture.add("first")).await;
        let batch: Vec<_> = names.iter().map(|name| fixture.add(name)).collect();
        let function = "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql";
        let trigger = "CREATE TRIGGER forget BEFORE INSERT ON pets EXECUTE FUNCTION forget()";
        let body = "BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN NULL; END";
        let forget = format!("{function} AS $${body}$$; {trigger}");
        observer.run(&forget).await;
        observer.unlock().await;
        first.await.expect("added");
        for added in join_all(batch).await {
            added.expect("added");
        }
        assert_eq!(fixture.names().await, names);
    })
    .await;
}
