//! Changes of API keys and of their uses: what they wait for, and what they leave in the database.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_adapters_postgres::PgApiKeyStore;
use animal_store_app::{
    ApiKeyId, Scopes,
    ports::{ApiKeyChangeError, ApiKeyStore, ApiKeyUse, ApiKeyUses, StoreFailure},
};
use animal_store_test_servers::PgDatabase;

use crate::{
    keys_support::{KeySpace, add, find, key_store, revoke, wait_for},
    outcomes::reason,
    sql_session::SqlSession,
    store::{cut_when_held, endpoint, proxy_to, short_timeout},
};

const HOUR: Duration = Duration::from_hours(1);

/// Otherwise the greater version could be visible first, and a directory would never read the other change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_waits_for_the_commit_of_the_change_before_it() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    let (directory, other) = (keys.directory(), SqlSession::of(&database).await);
    other.run("BEGIN; UPDATE api_key_state SET version = version + 1").await;
    other.run("INSERT INTO api_keys SELECT 'first', 'first', 'read', version FROM api_key_state").await;
    let insert = "INSERT INTO api_key_tokens VALUES (sha256('first'), 'first', 'last', now())";
    other.run(insert).await;
    let second = tokio::spawn(async move { keys.store.change(add("second", "second")).await });
    SqlSession::of(&database).await.wait_for_locks("transactionid", 1).await;
    assert_eq!(find(&directory, "second").await.expect("found"), None);

    other.run("COMMIT").await;
    second.await.expect("no panic").expect("added");
    wait_for(&directory, "second", true).await;
    assert!(find(&directory, "first").await.expect("found").is_some());
    assert_eq!(database.sql("SELECT id, version FROM api_keys ORDER BY version"), "first|1\nsecond|2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_waits_too_long_changes_nothing_and_the_next_one_is_applied() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    keys.add("key", "token").await;
    let other = SqlSession::of(&database).await;
    other.run("BEGIN; UPDATE api_key_state SET version = version + 1").await;
    let store = PgApiKeyStore::new(endpoint(database.url()), short_timeout());
    let revoked = store.change(revoke("key")).await;
    let Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(cause))) = revoked else { panic!("{revoked:?}") };
    assert!(cause.to_string().contains("statement timeout"), "{cause}");
    assert_eq!(keys.store.list().await.expect("list").len(), 1);
    other.run("ROLLBACK").await;
    store.change(revoke("key")).await.expect("revoked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_change_whose_commit_has_no_response_has_an_unknown_outcome() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    // A statement, the commit, or the response to it.
    for (id, text, is_known, listed) in
        [("a", "INSERT INTO api_keys", true, 0), ("b", "COMMIT\0", false, 0), ("c", "COMMIT\0Z", false, 1)]
    {
        let (mut proxy, url) = proxy_to(database.url());
        proxy.hold(text);
        let store = key_store(&url);
        let changed = cut_when_held(&proxy, store.change(add(id, id))).await;
        let Err(ApiKeyChangeError::Store(failure)) = changed else { panic!("{changed:?}") };
        assert_eq!(matches!(failure, StoreFailure::Unavailable(_)), is_known, "{}", reason(&failure));
        assert_eq!(matches!(failure, StoreFailure::OutcomeUnknown(_)), !is_known, "{}", reason(&failure));
        // It waits for the end of the transaction that was cut.
        keys.store.change(add("next", "next")).await.expect("added");
        keys.revoke("next").await;
        assert_eq!(keys.store.list().await.expect("list").len(), listed, "{text}");
        proxy.heal();
        store.change(add("same", "same")).await.expect("the same store connects again");
        keys.revoke("same").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_tokens_are_deleted_by_the_next_change() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    keys.add("a", "token-a").await;
    database.sql("UPDATE api_key_tokens SET expires_at = 'epoch'");
    keys.add("b", "token-b").await;
    assert_eq!(database.sql("SELECT api_key_id FROM api_key_tokens"), "b");
}

/// The row of the key stays, so that directories see the change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_deletes_the_tokens_and_uses_of_the_key() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    keys.add("key", "token").await;
    note_and_end(&keys, &["key"]).await;
    assert_eq!(database.sql("SELECT count(*) FROM api_key_uses"), "1");
    keys.revoke("key").await;
    for table in ["api_key_tokens", "api_key_uses"] {
        assert_eq!(database.sql(&format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
    assert_eq!(database.sql("SELECT version FROM api_keys"), "2");
}

/// Notes a request of these keys, and waits until the writer has ended.
async fn note_and_end(keys: &KeySpace, ids: &[&str]) {
    let (uses, writer_end) = keys.uses();
    for id in ids {
        uses.note(&ApiKeyId::new(id), ApiKeyUse::Request);
    }
    drop(uses);
    writer_end.await.expect("the writer does not panic");
}

/// The clock can be set back. A write is no change of a key: directories do not read the keys again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_uses_moves_no_time_backwards_and_no_beginning_and_not_the_version() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    let (early, late) = (keys.add("early", "token-a").await, keys.add("late", "token-b").await);
    let in_an_hour = SystemTime::now() + HOUR;
    let seconds = in_an_hour.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    database.sql(&format!(
        "INSERT INTO api_key_uses VALUES ('early', 0, to_timestamp(60)), ('late', 0, to_timestamp({seconds}));
        INSERT INTO api_key_use_record (since) VALUES (to_timestamp(60))"
    ));
    note_and_end(&keys, &["early", "late"]).await;

    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last(&early.id, ApiKeyUse::Request).expect("a use") > in_an_hour - 2 * HOUR);
    assert_eq!(uses.last(&late.id, ApiKeyUse::Request), Some(UNIX_EPOCH + Duration::from_secs(seconds)));
    assert_eq!(uses.since, Some(UNIX_EPOCH + Duration::from_mins(1)));
    assert_eq!(database.sql("SELECT version FROM api_key_state"), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uses_of_unknown_and_expired_keys_are_not_listed() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    keys.add("expired", "token").await;
    note_and_end(&keys, &["unknown", "expired"]).await;
    assert_eq!(database.sql("SELECT api_key_id FROM api_key_uses"), "expired");
    database.sql("UPDATE api_key_tokens SET expires_at = 'epoch'");
    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last.is_empty() && uses.since.is_some(), "{uses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_key_is_named_by_a_list_is_an_error_for_its_token_only_and_can_be_revoked() {
    for change in [
        "UPDATE api_keys SET label = '' WHERE id = 'bad'",
        "UPDATE api_key_tokens SET last_four = 'abcde' WHERE api_key_id = 'bad'",
        "UPDATE api_key_tokens SET digest = '\\x00' WHERE api_key_id = 'bad'",
    ] {
        let database = PgDatabase::new();
        let keys = KeySpace::of(&database).await;
        keys.add("good", "good-token").await;
        keys.add("bad", "bad-token").await;
        database.sql(change);
        let directory = keys.directory();
        assert!(find(&directory, "good-token").await.expect("found").is_some());
        if change.contains("label") {
            let found = find(&directory, "bad-token").await;
            assert!(matches!(found, Err(StoreFailure::Corrupt(_))), "{found:?}");
        }
        let Err(StoreFailure::Corrupt(cause)) = keys.store.list().await else { panic!("{change}") };
        assert!(cause.to_string().contains("API key \"bad\": the "), "{cause}");
        let added = keys.store.change(add("bad", "new")).await;
        assert!(matches!(added, Err(ApiKeyChangeError::Store(StoreFailure::Corrupt(_)))), "{added:?}");

        let revoked = keys.store.change(revoke("bad")).await.expect("revoked").before.expect("the key").key;
        assert_eq!((revoked.label.as_str(), revoked.scopes), ("unreadable", Scopes::default()));
        assert_eq!(keys.store.list().await.expect("list").len(), 1);
    }
}

/// A directory would not see the change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_version_no_key_is_changed() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    database.sql("DELETE FROM api_key_state");
    let changed = keys.store.change(add("new", "new")).await;
    assert!(matches!(changed, Err(ApiKeyChangeError::Store(StoreFailure::Corrupt(_)))), "{changed:?}");
    assert!(keys.store.list().await.expect("list").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_may_not_change_keys_is_told_which_permissions_are_missing() {
    let database = PgDatabase::new();
    let _keys = KeySpace::of(&database).await;
    let role = format!("store_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON api_keys, api_key_tokens TO {role}"));
    let store = key_store(&database.url().replace("postgres@", &format!("{role}@")));
    let error = store.check_writable().await.expect_err("it is not writable");
    let missing = reason(&error);
    for grant in ["GRANT INSERT, UPDATE ON api_keys TO", "GRANT SELECT, UPDATE ON api_key_state TO"] {
        assert!(missing.contains(grant), "{missing}");
    }
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
