//! Values under the name of a token that are not valid tokens.

use std::time::Duration;

use animal_store_app::{
    ApiKeyChange, Scope,
    ports::{ApiKeyChangeError, ApiKeyStore, StoreFailure},
};
use animal_store_test_servers::RedisSpace;

use crate::{
    requests::{Refused, becomes, wait_until},
    setup::{Keys, add, find, name, revoke, rotate, settings},
};

/// Commands that store a value that is not a valid token.
const CORRUPTIONS: [&str; 8] = [
    "redis.call('SET', KEYS[1], 'token')",
    "redis.call('RPUSH', KEYS[1], 'id', 'label', 'scopes')",
    "redis.call('HSET', KEYS[1], 'id', 'key')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'label')",
    "redis.call('HSET', KEYS[1], 'label', 'label', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'not an id', 'label', 'label', 'scopes', 'read,write')",
    "redis.call('HSET', KEYS[1], 'id', 'key', 'label', ' ', 'scopes', 'read,write')",
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

    /// Asserts that a list, and these changes, find an invalid entry.
    async fn assert_corrupt(&self, changes: &[ApiKeyChange]) {
        let list = self.keys.store.list().await;
        assert!(matches!(list, Err(StoreFailure::Corrupt(_))), "{list:?}");
        for change in changes {
            let outcome = self.keys.store.change(change.clone()).await;
            assert!(matches!(outcome, Err(ApiKeyChangeError::Store(StoreFailure::Corrupt(_)))), "{outcome:?}");
        }
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
}

/// A hash that was written by hand may have no other fields. Unknown scopes are ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_found_by_id_label_and_scopes_alone() {
    let corrupted = Corrupted::new();
    let directory = corrupted.keys.directory().await;
    for (scopes, expected) in
        [("", &[][..]), ("READ, write", &[]), ("*,write,\\0", &[Scope::Write]), (",read,,write,", &Scope::ALL)]
    {
        let token = format!("token of {scopes}");
        let fields = format!("'id', 'key', 'label', 'label', 'scopes', '{scopes}'");
        corrupted.corrupt(&token, &format!("redis.call('HSET', KEYS[1], {fields})"));
        let key = find(&directory, &token).await.expect("find").expect("a key");
        assert_eq!(key.scopes, expected.iter().copied().collect(), "{scopes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_reports_an_invalid_token_with_its_key_and_changes_nothing() {
    let fields = ["'created', 'x'", "'expires', '-1'", "'last4', 'abcde'"];
    let fields = fields.map(|field| {
        format!("redis.call('HSET', KEYS[1], 'id', 'key', 'label', 'label', 'scopes', 'read,write', {field})")
    });
    for corruption in CORRUPTIONS.into_iter().chain(fields.iter().map(String::as_str)) {
        let corrupted = Corrupted::new();
        corrupted.keys.add("key", "token").await;
        corrupted.keys.add("other", "other").await;
        corrupted.corrupt("token", corruption);
        let dump = |token| corrupted.space.command(&["DUMP", &name(corrupted.space.prefix(), token)]);
        let before = (dump("token"), corrupted.space.names().len());

        corrupted.assert_corrupt(&[rotate("key", "new", Duration::ZERO), add("new", "token", None)]).await;
        let Err(StoreFailure::Corrupt(cause)) = corrupted.keys.store.list().await else { panic!("it is not valid") };
        assert!(cause.to_string().starts_with("API key key: "), "{cause}");
        assert_eq!((dump("token"), corrupted.space.names().len()), before, "{corruption}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_revoked_even_if_one_of_its_tokens_is_not_valid() {
    for corruption in CORRUPTIONS {
        for bad in ["old", "new"] {
            let corrupted = Corrupted::new();
            let (keys, directory) = (&corrupted.keys, corrupted.keys.directory().await);
            keys.add("key", "old").await;
            keys.change(rotate("key", "new", Duration::from_hours(1))).await;
            keys.add("other", "other").await;
            corrupted.corrupt(bad, corruption);

            let revoked = keys.change(revoke("key")).await.before.expect("the key");
            assert_eq!((revoked.key.id.as_str(), revoked.key.label.as_str()), ("key", "unreadable"));
            for token in ["old", "new"] {
                becomes(&directory, token, Refused).await;
            }
            assert_eq!(keys.listed().await, ["other"], "{corruption}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_index_is_an_error_and_not_an_empty_list() {
    let corrupted = Corrupted::new();
    corrupted.keys.add("key", "token").await;
    let index = format!("{}v1:index", corrupted.space.prefix());
    corrupted.space.command(&["SET", &index, "index"]);
    corrupted.assert_corrupt(&[revoke("key"), add("other", "other", None)]).await;
    assert_eq!(corrupted.space.names().len(), 2);
}
