//! Rows that other programs have changed or removed.

use animal_store_app::{
    ports::{ApiKeyStore, StoreFailure},
    test_support::{
        failures::{CORRUPT, assert_fails},
        key_changes::{add, revoke},
    },
};

use super::{SqlKeys, find, is_accepted, wait_for};
use crate::KeyDatabase;

/// What a lookup of a token of an invalid key does.
#[derive(Debug, PartialEq)]
enum Lookup {
    Fails,
    FindsNothing,
    FindsTheKey,
}

/// A malformed digest is that of no token, and a lookup does not read the last four characters. A list names the key.
pub async fn an_invalid_key_is_an_error_for_its_token_only_and_can_be_revoked<D: KeyDatabase>(
    keys: SqlKeys<D>,
) {
    keys.add(&["good"]).await;
    for (damage, expected) in [
        (
            "UPDATE api_keys SET label = '' WHERE id = 'bad'",
            Lookup::Fails,
        ),
        (
            "UPDATE api_key_tokens SET digest = (SELECT mark FROM api_key_state) WHERE api_key_id = 'bad'",
            Lookup::FindsNothing,
        ),
        (
            "UPDATE api_key_tokens SET last_four = '12345' WHERE api_key_id = 'bad'",
            Lookup::FindsTheKey,
        ),
    ] {
        keys.add(&["bad"]).await;
        (keys.execute)(damage);
        let directory = keys.directory();
        let lookup = match find(&directory, "bad").await {
            Err(StoreFailure::Corrupt(_)) => Lookup::Fails,
            Ok(None) => Lookup::FindsNothing,
            Ok(Some(_)) => Lookup::FindsTheKey,
            Err(failure) => panic!("{damage}: {failure:?}"),
        };
        assert_eq!(lookup, expected, "{damage}");
        assert!(is_accepted(&directory, "good").await);
        let cause = assert_fails(keys.list().await, CORRUPT);
        assert!(cause.contains("API key \"bad\""), "{damage}: {cause}");
        keys.revoke("bad").await;
        assert_eq!(keys.listed_ids().await, ["good"]);
    }
}

/// An earlier release may have accepted it. Its characters are escaped.
pub async fn a_key_whose_label_is_refused_today_works<D: KeyDatabase>(keys: SqlKeys<D>) {
    keys.add(&["key"]).await;
    (keys.execute)("UPDATE api_keys SET label = 'a\u{202e}b'");
    let found = find(&keys.directory(), "key")
        .await
        .expect("found")
        .expect("the key");
    assert_eq!(found.label.as_str(), "a\\u{202e}b");
    let listed = keys.list().await.expect("listed");
    assert_eq!(listed[0].key, found);
}

/// A directory would not see the change.
pub async fn without_the_version_no_key_is_changed<D: KeyDatabase>(keys: SqlKeys<D>) {
    keys.add(&["key"]).await;
    (keys.execute)("DELETE FROM api_key_state");
    for change in [revoke("key"), add("new", "new", None)] {
        assert_fails(keys.change(change, "test").await, CORRUPT);
    }
    assert_eq!(keys.listed_ids().await, ["key"]);
}

/// The table may be locked, or a trigger of another program may refuse the row.
pub async fn a_revocation_that_cannot_be_recorded_is_done<D: KeyDatabase>(keys: SqlKeys<D>) {
    let directory = keys.directory();
    keys.add(&["key", "next"]).await;
    wait_for(&directory, "key", true).await;
    (keys.execute)("ALTER TABLE api_key_changes RENAME TO other");
    keys.revoke("key").await;
    wait_for(&directory, "key", false).await;
    (keys.execute)("ALTER TABLE other RENAME TO api_key_changes");
    keys.revoke("next").await;
    let log = keys.audit_log().await.expect("listed");
    let changes: Vec<_> = log.iter().map(|entry| &*entry.change).collect();
    assert_eq!(changes, ["create", "create", "revoke"]);
}
