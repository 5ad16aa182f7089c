//! Export and import of all keys.

use std::time::Duration;

use animal_store_app::{
    ports::{ApiKeyRecord, ApiKeySource, ApiKeyStore, ApiKeyStoreError, ApiKeyTarget, ImportedApiKeys, NewToken},
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

async fn import(keys: &Keys, records: Vec<ApiKeyRecord>) -> usize {
    keys.store.import(records).await.expect("imported").added
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_move_to_another_store() {
    let (from, to) = (RedisSpace::new(), RedisSpace::new());
    let (from, to) = (keys(&from), keys(&to));
    let tokens: Vec<_> = (0..TOKENS).map(|number| format!("token-{number}")).collect();
    let records: Vec<_> = tokens.iter().map(|token| record(&format!("key-of-{token}"), token)).collect();
    assert_eq!(import(&from, records).await, TOKENS);
    let exported = from.store.export().await.expect("exported");
    assert_eq!(exported.len(), TOKENS);
    assert_eq!(import(&to, exported.clone()).await, TOKENS);
    assert_eq!(import(&to, exported.clone()).await, 0);
    assert_eq!(to.store.export().await.expect("exported"), exported);

    let directory = to.directory().await;
    becomes(&directory, "token-7", Accepted).await;
    to.revoke(&api_key("key-of-token-7")).await;
    changes_to(&directory, "token-7", Refused).await;
}

/// Their tokens stay in the index, oldest first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_reports_and_keeps_the_keys_that_only_the_store_has() {
    let space = RedisSpace::new();
    let keys = keys(&space);
    keys.add("mine", "old").await;
    keys.store.rotate(&api_key("mine").id, new_token("new"), HOUR).await.expect("rotated").expect("the key exists");
    let before = keys.store.export().await.expect("exported");
    let imported = keys.store.import(vec![record("a", "1"), record("b", "2")]).await.expect("imported");
    assert_eq!(imported, ImportedApiKeys { added: 2, others: vec![api_key("mine").id] });
    let after = keys.store.export().await.expect("exported");
    assert_eq!(after, [&[record("a", "1"), record("b", "2")], &before[..]].concat());
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
    assert!(matches!(imported, Err(ApiKeyStoreError::Conflict(_))), "{imported:?}");
    assert_eq!((dump(), space.names().len()), (before, 1));
}

/// Imports and other changes interrupt each other, and are all applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_imports_and_rotations_are_all_applied() {
    let space = RedisSpace::new();
    keys(&space).add("a", "token").await;
    let tasks = (0..6).map(|number| {
        let keys = keys(&space);
        async move {
            let token = format!("token-{number}");
            if number % 2 == 0 {
                let rotated = keys.store.rotate(&api_key("a").id, new_token(&token), HOUR).await;
                rotated.expect("rotated").expect("the key exists");
            } else {
                assert_eq!(import(&keys, vec![record(&format!("key-{number}"), &token)]).await, 1);
            }
        }
    });
    join_tasks(tasks).await;
    assert_eq!(keys(&space).store.list().await.expect("list").len(), 7);
}
