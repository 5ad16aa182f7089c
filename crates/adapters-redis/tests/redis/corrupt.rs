//! Values under the name of a token that are not valid tokens.

use std::time::Duration;

use animal_store_app::{
    Scope,
    ports::{ApiKeyStore, ApiKeyStoreError, StoreFailure},
    test_support::api_key,
};
use animal_store_test_servers::RedisSpace;

use crate::{
    requests::{Refused, becomes, wait_until},
    setup::{Keys, find, name, new_token, settings},
};

/// Commands that store a value that is not a valid token.
const CORRUPTIONS: [&str; 10] = [
    "redis.call('SET', KEYS[1], 'token')",
    "redis.call('RPUSH', KEYS[1], 'id', 'label', 'scopes')",
    "redis.call('HSET', KEYS[1], 'id', 'key')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'label')",
    "redis.call('HSET', KEYS[1], 'label', 'label', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'not an id', 'label', 'label', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', ' ', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'a\\nb', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', string.rep('x', 65), 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', '\\255\\254', 'scopes', 'read,write')",
];

struct Corrupted {
    keys: Keys,
    space: RedisSpace,
}

impl Corrupted {
    fn new() -> Self {
        let space = RedisSpace::new();
        Self { keys: Keys::at(space.url(), settings(space.prefix())), space }
    }

    fn corrupt(&self, token: &str, corruption: &str) {
        let name = name(self.space.prefix(), token);
        self.space.command(&["EVAL", &format!("redis.call('DEL', KEYS[1]) {corruption}"), "1", &name]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_not_a_token_is_an_error() {
    let corrupted = Corrupted::new();
    let directory = corrupted.keys.directory().await;
    for corruption in CORRUPTIONS {
        corrupted.corrupt("token", corruption);
        // Until the invalidation arrives, the token is unknown, as it was before.
        wait_until(corruption, async || match find(&directory, "token").await {
            Err(StoreFailure::Corrupt(_)) => true,
            Ok(None) => false,
            outcome => panic!("{corruption}: {outcome:?}"),
        })
        .await;
        // The error is not cached.
        let outcome = find(&directory, "token").await;
        assert!(matches!(outcome, Err(StoreFailure::Corrupt(_))), "{corruption}: {outcome:?}");
    }
    let good = "redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'label', 'scopes', 'read')";
    corrupted.corrupt("token", good);
    assert!(find(&directory, "token").await.expect("find").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_scopes_are_ignored() {
    let corrupted = Corrupted::new();
    let directory = corrupted.keys.directory().await;
    for (number, (scopes, expected)) in [
        ("", &[][..]),
        ("admin", &[]),
        ("READ, write", &[]),
        ("read write", &[]),
        ("read,admin", &[Scope::Read]),
        ("*,write,\\0", &[Scope::Write]),
        (",read,,write,", &Scope::ALL),
    ]
    .into_iter()
    .enumerate()
    {
        let token = format!("token-{number}");
        let fields = format!("'id', 'key', 'label', 'label', 'scopes', '{scopes}'");
        corrupted.corrupt(&token, &format!("redis.call('HSET', KEYS[1], {fields})"));
        let key = find(&directory, &token).await.expect("find").expect("a key");
        assert_eq!(key.scopes, expected.iter().copied().collect(), "{scopes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_reports_an_invalid_token_and_changes_nothing() {
    for corruption in CORRUPTIONS {
        let corrupted = Corrupted::new();
        let store = &corrupted.keys.store;
        let key = corrupted.keys.add("key", "token").await;
        corrupted.keys.add("other", "other").await;
        corrupted.corrupt("token", corruption);
        let dump = |token| corrupted.space.command(&["DUMP", &name(corrupted.space.prefix(), token)]);
        let before = (dump("token"), corrupted.space.names().len());

        let list = store.list().await.expect_err("one token is not valid");
        let rotated = store.rotate(&key.id, new_token("new"), Duration::ZERO).await.expect_err("it is not valid");
        let added = store.add(api_key("new"), new_token("token")).await.expect_err("the name is taken");
        for error in [list, rotated, added] {
            assert!(matches!(error, ApiKeyStoreError::Corrupt(_)), "{corruption}: {error:?}");
        }
        assert_eq!((dump("token"), corrupted.space.names().len()), before, "{corruption}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_revoked_even_if_one_of_its_tokens_is_not_valid() {
    for corruption in CORRUPTIONS {
        for bad in ["old", "new"] {
            let corrupted = Corrupted::new();
            let (keys, directory) = (&corrupted.keys, corrupted.keys.directory().await);
            let key = keys.add("key", "old").await;
            let grace = Duration::from_hours(1);
            keys.store.rotate(&key.id, new_token("new"), grace).await.expect("rotate").expect("the key");
            let other = keys.add("other", "other").await;
            corrupted.corrupt(bad, corruption);

            let revoked = keys.store.revoke(&key.id).await.expect("revoke").expect("the key");
            assert_eq!(revoked.id, key.id);
            for token in ["old", "new"] {
                becomes(&directory, token, Refused).await;
            }
            let list = keys.store.list().await.expect("list");
            assert_eq!(list.iter().map(|entry| &entry.key).collect::<Vec<_>>(), [&other], "{corruption}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_index_is_an_error_and_not_an_empty_list() {
    let corrupted = Corrupted::new();
    let keys = &corrupted.keys;
    let key = keys.add("key", "token").await;
    let index = format!("{}v1:index", corrupted.space.prefix());
    corrupted.space.command(&["SET", &index, "index"]);

    let list = keys.store.list().await.expect_err("list");
    let revoked = keys.store.revoke(&key.id).await.expect_err("revoke");
    let added = keys.store.add(api_key("other"), new_token("other")).await.expect_err("add");
    for error in [list, revoked, added] {
        assert!(matches!(error, ApiKeyStoreError::Corrupt(_)), "{error:?}");
    }
    assert_eq!(corrupted.space.names().len(), 2);
}
