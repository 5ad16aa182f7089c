//! Export and import of all keys.

use std::time::Duration;

use animal_store_app::{
    ApiKeyLabel,
    ports::{ApiKeyRecord, ApiKeyStore, ApiKeyStoreError, BulkApiKeys, NewToken},
    test_support::{api_key, join_tasks},
};
use animal_store_test_servers::RedisSpace;

use crate::{
    requests::{Accepted, Refused, becomes, changes_to},
    setup::{Keys, name, new_token, settings},
};

const HOUR: Duration = Duration::from_hours(1);

/// More tokens than one message of an export or of a list reads.
const TOKENS: usize = 1200;

fn keys(space: &RedisSpace) -> Keys {
    Keys::at(space.url(), settings(space.prefix()))
}

/// The record of a token that does not expire.
fn record(id: &str, token: &str) -> ApiKeyRecord {
    let NewToken { digest, last_four, .. } = new_token(token);
    let created = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    ApiKeyRecord { key: api_key(id), digest, last_four, created, expires: None }
}

fn is_conflict<T>(result: &Result<T, ApiKeyStoreError>) -> bool {
    matches!(result, Err(ApiKeyStoreError::Conflict(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_move_to_another_store() {
    let (from, to) = (RedisSpace::new(), RedisSpace::new());
    let (from, to) = (keys(&from), keys(&to));
    let tokens: Vec<_> = (0..TOKENS).map(|number| format!("token-{number}")).collect();
    let records: Vec<_> = tokens.iter().map(|token| record(&format!("key-of-{token}"), token)).collect();
    assert_eq!(from.store.import(records).await.expect("imported"), TOKENS);
    let exported = from.store.export().await.expect("exported");
    assert_eq!(exported.len(), TOKENS);
    assert_eq!(to.store.import(exported.clone()).await.expect("imported"), TOKENS);
    assert_eq!(to.store.import(exported.clone()).await.expect("nothing to do"), 0);
    assert_eq!(to.store.export().await.expect("exported"), exported);

    let directory = to.directory().await;
    becomes(&directory, "token-7", Accepted).await;
    to.revoke(&api_key("key-of-token-7")).await;
    changes_to(&directory, "token-7", Refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_contradict_each_other_are_refused() {
    let space = RedisSpace::new();
    let store = keys(&space).store;
    let label = ApiKeyLabel::parse("another label").expect("a label");
    let mut other_label = record("a", "2");
    other_label.key.label = label;
    for contradiction in [other_label, record("b", "1")] {
        let imported = store.import(vec![record("a", "1"), contradiction]).await;
        assert!(is_conflict(&imported), "{imported:?}");
        assert_eq!(space.names(), [""; 0]);
    }
    assert_eq!(store.import(vec![record("a", "1"), record("a", "1")]).await.expect("imported"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_missing_in_the_index_is_not_overwritten() {
    let space = RedisSpace::new();
    let keys = keys(&space);
    keys.add("a", "token").await;
    space.command(&["DEL", &format!("{}v1:index", space.prefix())]);
    let dump = || space.command(&["DUMP", &name(space.prefix(), "token")]);
    let before = dump();
    let imported = keys.store.import(vec![record("b", "token"), record("c", "other")]).await;
    assert!(is_conflict(&imported), "{imported:?}");
    assert_eq!((dump(), space.names().len()), (before, 1));
}

/// Imports and other changes interrupt each other, and are all applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_imports_and_rotations_are_all_applied() {
    let space = RedisSpace::new();
    keys(&space).add("a", "token").await;
    let tasks = (0..6).map(|number| {
        let store = keys(&space).store;
        async move {
            let token = format!("token-{number}");
            if number % 2 == 0 {
                let rotated = store.rotate(&api_key("a").id, new_token(&token), HOUR).await;
                rotated.expect("rotated").expect("the key exists");
            } else {
                assert_eq!(store.import(vec![record("a", &token)]).await.expect("imported"), 1);
            }
        }
    });
    join_tasks(tasks).await;
    assert_eq!(keys(&space).store.list().await.expect("list").len(), 7);
}
