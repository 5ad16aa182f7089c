//! Values under the name of a token that are not valid tokens.

use animal_store_app::{Scope, Scopes};

use crate::prelude::*;

/// Commands that store a value that is not a valid token.
const CORRUPTIONS: [&str; 5] = [
    "redis.call('SET', KEYS[1], 'token')",
    "redis.call('HSET', KEYS[1], 'id', 'key')",
    "redis.call('HSET', KEYS[1], 'label', 'label', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'not an id', 'label', 'label', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', '\\255\\254', 'scopes', 'read,write')",
];

struct Corrupted {
    keys: Keys,
    server: RedisServer,
}

impl Corrupted {
    fn new() -> Self {
        let server = RedisServer::with("--enable-debug-command yes");
        Self {
            keys: Keys::of(&server),
            server,
        }
    }

    fn corrupt(&self, token: &str, corruption: &str) {
        self.server.command(&[
            "EVAL",
            &format!("redis.call('DEL', KEYS[1]) {corruption}"),
            "1",
            &name(token),
        ]);
    }

    /// Asserts that a list, and these changes, find an invalid entry. Returns the cause of the list.
    async fn assert_corrupt(&self, changes: &[ApiKeyChange]) -> String {
        for change in changes {
            assert_fails(
                self.keys.store.change(change.clone(), "test").await,
                CORRUPT,
            );
        }
        assert_fails(self.keys.store.list().await, CORRUPT)
    }
}

#[tokio::test]
async fn a_value_that_is_not_a_token_is_an_error() {
    let corrupted = Corrupted::new();
    let directory = corrupted.keys.directory().await;
    for corruption in CORRUPTIONS {
        corrupted.corrupt("token", corruption);
        // Until the invalidation arrives, the token is unknown, as it was before. Without a session, requests fail.
        wait_until(corruption, async || match find(&directory, "token").await {
            Err(StoreFailure::Corrupt(_)) => true,
            Ok(None) | Err(StoreFailure::Unavailable(_) | StoreFailure::Timeout) => false,
            outcome => panic!("{corruption}: {outcome:?}"),
        })
        .await;
        // The error is not cached.
        assert_fails(find(&directory, "token").await, CORRUPT);
    }
}

/// A hash that was written by hand may have no other fields. Unknown scopes are ignored.
#[tokio::test]
async fn a_token_is_found_by_id_label_and_scopes_alone() {
    let corrupted = Corrupted::new();
    let directory = corrupted.keys.directory().await;
    corrupted.corrupt(
        "token",
        "redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'label', 'scopes', '*,write')",
    );
    becomes(&directory, "token", Accepted).await;
    let key = find(&directory, "token")
        .await
        .expect("find")
        .expect("a key");
    assert_eq!(key.scopes, Scopes::from_iter([Scope::Write]));
}

#[tokio::test]
async fn a_store_reports_an_invalid_token_with_its_key_and_changes_nothing() {
    let created = "redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'label', 'scopes', 'read,write', 'created', 'x')";
    for corruption in CORRUPTIONS.into_iter().chain([created]) {
        let corrupted = Corrupted::new();
        corrupted.keys.add("key", "token").await;
        corrupted.keys.add("other", "other").await;
        corrupted.corrupt("token", corruption);
        let before = corrupted.server.run("DEBUG DIGEST");

        let changes = [
            rotate("key", "new", Duration::ZERO),
            add("new", "token", None),
        ];
        let cause = corrupted.assert_corrupt(&changes).await;
        assert!(cause.starts_with("API key key: "), "{cause}");
        assert_eq!(corrupted.server.run("DEBUG DIGEST"), before, "{corruption}");
    }
}

#[tokio::test]
async fn a_key_is_revoked_even_if_one_of_its_tokens_is_not_valid() {
    for corruption in CORRUPTIONS {
        for bad in ["old", "new"] {
            let corrupted = Corrupted::new();
            let keys = &corrupted.keys;
            let directory = keys.directory().await;
            keys.add("key", "old").await;
            keys.change(rotate("key", "new", HOUR)).await;
            keys.add("other", "other").await;
            corrupted.corrupt(bad, corruption);

            let revoked = keys.change(revoke("key")).await.before.expect("the key");
            assert_eq!(revoked.key.id.as_str(), "key");
            assert_eq!(revoked.key.label.as_str(), "unreadable");
            for token in ["old", "new"] {
                becomes(&directory, token, Refused).await;
            }
            assert_eq!(keys.listed().await, ["other"], "{corruption}");
        }
    }
}

#[tokio::test]
async fn an_invalid_index_is_an_error_and_not_an_empty_list() {
    let corrupted = Corrupted::new();
    corrupted.keys.add("key", "token").await;
    corrupted.server.run("SET shop:v1:index index");
    corrupted
        .assert_corrupt(&[revoke("key"), add("other", "other", None)])
        .await;
    assert_eq!(corrupted.server.run("DBSIZE"), "3");
}
