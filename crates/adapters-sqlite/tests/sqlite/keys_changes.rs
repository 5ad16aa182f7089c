//! Changes of API keys and of their uses: what they wait for, and what they leave in the file.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_adapters_sqlite::{FileUse, SqliteApiKeyStore, SqliteFile};
use animal_store_app::{
    ApiKeyChange, ApiKeyDigest, IssuedApiKey,
    ports::{ApiKeyChangeError, ApiKeyStore, ApiKeyUse, ApiKeyUses, StoreFailure},
    test_support::{api_key, api_key_id, key_changes::rotate},
};

use crate::{
    keys_support::{Keys, add, new_token, revoke},
    sql::{execute, lock, number},
};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn a_change_that_gets_no_write_lock_in_time_changes_nothing_and_the_next_one_is_applied() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    let store = SqliteApiKeyStore::new(
        SqliteFile::open(&keys.path(), FileUse::Write, Duration::from_millis(100)).expect("a file"),
    );
    let other = lock(&keys.path());
    let revoked = store.change(revoke("key"), "test").await.map(drop);
    // It finds the other key under the lock only: of two first keys at one moment, one is added.
    let added = store
        .add_first(api_key("first"), new_token("first", None), "test")
        .await
        .map(drop);
    for outcome in [revoked, added] {
        let Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(cause))) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(cause.to_string().contains("store.db"), "{cause}");
    }
    store.check_writable().await.expect_err("locked");
    assert_eq!(
        store.list().await.expect("list").len(),
        1,
        "a reader needs no lock"
    );
    drop(other);
    store.check_writable().await.expect("not locked");
    store.change(revoke("key"), "test").await.expect("revoked");
}

#[tokio::test]
async fn after_any_change_no_first_key_is_added() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    assert!(
        !keys
            .store
            .add_first(api_key("first"), new_token("first", None), "test")
            .await
            .expect("add")
    );
    keys.store
        .change(revoke("key"), "test")
        .await
        .expect("revoke");
    assert!(
        !keys
            .store
            .add_first(api_key("first"), new_token("first", None), "test")
            .await
            .expect("add")
    );
    assert_eq!(keys.store.list().await.expect("list"), []);
}

/// One reading of a clock deletes nothing, and neither does a later one soon after it.
#[tokio::test]
async fn expired_tokens_are_deleted_by_a_change_a_month_after_one_that_found_them() {
    let keys = Keys::new();
    keys.add("a", "token-a").await;
    execute(&keys.path(), "UPDATE api_key_tokens SET expires_at = 1");
    let tokens = || number(&keys.path(), "SELECT count(*) FROM api_key_tokens");
    for (id, days, left) in [("b", 0, 2), ("c", 29, 3), ("d", 31, 3)] {
        let age = Duration::from_hours(24 * days).as_millis();
        execute(
            &keys.path(),
            &format!("UPDATE api_key_readings SET at = at - {age}"),
        );
        keys.add(id, id).await;
        assert_eq!(tokens(), left, "{id}");
    }
    let listed = keys.store.list().await.expect("list");
    assert_eq!(listed.len(), 3);
    let counts = "SELECT keys * 10 + tokens FROM api_key_state";
    assert_eq!(number(&keys.path(), counts), 43);
}

/// The key of a change may have such tokens as well.
#[tokio::test]
async fn a_clock_that_is_ahead_during_one_change_deletes_no_valid_token_and_no_entry() {
    for days in [200, 400] {
        for wrong in [
            revoke("other"),
            add("new", "new", None),
            rotate("mixed", "m3", HOUR),
        ] {
            let keys = Keys::new();
            for change in [
                add("other", "other", None),
                add("kept", "kept", Some(90 * DAY)),
                add("mixed", "m1", None),
                rotate("mixed", "m2", 80 * DAY),
            ] {
                keys.store.change(change, "test").await.expect("changed");
            }
            let before = valid_tokens(&keys).await;
            // All stored times move back, as if the clock went forward.
            let age = days * i64::try_from(DAY.as_millis()).expect("an age");
            move_times(&keys, -age);
            keys.store.change(wrong, "test").await.expect("changed");
            move_times(&keys, age);
            keys.add("last", "last").await;
            let after = valid_tokens(&keys).await;
            let other = new_token("other", None).digest;
            let lost = before.iter().find(|token| !after.contains(token));
            assert!(lost.is_none_or(|digest| *digest == other), "{lost:?}");
            let entries = keys.store.audit_log().await.expect("list");
            assert_eq!(entries.len(), 6, "{entries:?}");
            assert_eq!(number(&keys.path(), COUNTED), number(&keys.path(), FOUND));
        }
    }
}

async fn valid_tokens(keys: &Keys) -> Vec<ApiKeyDigest> {
    let listed = keys.store.list().await.expect("list");
    let tokens = listed.iter().flat_map(|key| &key.tokens);
    tokens.map(|token| token.digest).collect()
}

fn move_times(keys: &Keys, by: i64) {
    execute(
        &keys.path(),
        &format!(
            "UPDATE api_key_tokens SET created_at = created_at + {by}, expires_at = expires_at + {by};
            UPDATE api_key_changes SET at = at + {by};
            UPDATE api_key_readings SET at = at + {by}"
        ),
    );
}

/// What the state says about the numbers of rows.
const COUNTED: &str = "SELECT keys * 1000 + tokens FROM api_key_state";
const FOUND: &str =
    "SELECT (SELECT count(*) FROM api_keys) * 1000 + (SELECT count(*) FROM api_key_tokens)";

/// A directory that starts would refuse the keys otherwise.
#[tokio::test]
async fn after_each_change_the_state_has_the_numbers_of_keys_and_tokens() {
    let keys = Keys::new();
    let imported = |keys: &[IssuedApiKey]| ApiKeyChange::Import(keys[0].clone());
    let change = async |change| {
        keys.store.change(change, "test").await.expect("changed");
        assert_eq!(number(&keys.path(), COUNTED), number(&keys.path(), FOUND));
    };
    change(add("a", "1", None)).await;
    change(rotate("a", "2", HOUR)).await;
    change(rotate("a", "3", Duration::ZERO)).await;
    let list = keys.store.list().await.expect("list");
    change(imported(&list)).await;
    change(revoke("a")).await;
    change(imported(&list)).await;
    // A token that has expired can be that of another key, and of its own one again.
    for id in ["b", "c"] {
        execute(&keys.path(), "UPDATE api_key_tokens SET expires_at = 1");
        change(add(id, "3", None)).await;
    }
    execute(&keys.path(), "UPDATE api_key_tokens SET expires_at = 1");
    change(add("c", "3", None)).await;
    // An older program changes the version only.
    execute(
        &keys.path(),
        "DELETE FROM api_key_tokens; UPDATE api_key_state SET version = version + 1",
    );
    change(add("d", "5", None)).await;
}

/// The row of the key stays, so that directories see the change.
#[tokio::test]
async fn a_revocation_deletes_the_tokens_and_uses_of_the_key() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    note_and_end(&keys, &["key"]).await;
    assert_eq!(number(&keys.path(), "SELECT count(*) FROM api_key_uses"), 1);
    keys.store
        .change(revoke("key"), "test")
        .await
        .expect("revoke");
    for table in ["api_key_tokens", "api_key_uses"] {
        assert_eq!(
            number(&keys.path(), &format!("SELECT count(*) FROM {table}")),
            0,
            "{table}"
        );
    }
    assert_eq!(number(&keys.path(), "SELECT version FROM api_keys"), 2);
}

/// Notes a request of these keys, and waits until the writer has ended.
async fn note_and_end(keys: &Keys, ids: &[&str]) {
    let (uses, writer_end) = keys.uses(HOUR);
    for id in ids {
        uses.note(&api_key_id(id), ApiKeyUse::Request);
    }
    drop(uses);
    writer_end.await.expect("the writer does not panic");
}

/// The clock can be set back.
#[tokio::test]
async fn a_write_moves_no_time_backwards_and_no_beginning() {
    let keys = Keys::new();
    let (early, late) = (
        keys.add("early", "token-a").await,
        keys.add("late", "token-b").await,
    );
    let in_an_hour = SystemTime::now() + HOUR;
    let seconds = in_an_hour
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    execute(
        &keys.path(),
        &format!(
            "INSERT INTO api_key_uses VALUES ('early', 0, 60), ('late', 0, {seconds});
         UPDATE api_key_state SET uses_since = 60"
        ),
    );
    note_and_end(&keys, &["early", "late"]).await;

    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last(&early.id, ApiKeyUse::Request).expect("a use") > in_an_hour - 2 * HOUR);
    assert_eq!(
        uses.last(&late.id, ApiKeyUse::Request),
        Some(UNIX_EPOCH + Duration::from_secs(seconds))
    );
    assert_eq!(uses.since, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

#[tokio::test]
async fn uses_of_unknown_and_expired_keys_are_not_listed() {
    let keys = Keys::new();
    keys.add("expired", "token").await;
    note_and_end(&keys, &["unknown", "expired"]).await;
    execute(&keys.path(), "UPDATE api_key_tokens SET expires_at = 1");
    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last.is_empty(), "{uses:?}");
    assert!(uses.since.is_some());
}

/// A write is no change of a key: directories do not read the keys again.
#[tokio::test]
async fn a_write_does_not_change_the_version_of_the_keys() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    let version = number(&keys.path(), "SELECT version FROM api_key_state");
    note_and_end(&keys, &["key"]).await;
    assert_eq!(
        number(&keys.path(), "SELECT version FROM api_key_state"),
        version
    );
}
