//! Concurrent changes.

use std::sync::Arc;

use super::{HOUR, Keys};
use crate::{
    ApiKeyRefusal,
    ports::ApiKeyChangeError,
    test_support::{
        api_key, join_tasks,
        key_changes::{add, rotate},
    },
};

/// No change is lost or applied in part.
pub async fn concurrent_changes_are_all_applied(keys: Keys) {
    join_tasks((0..8).map(|number| {
        let store = Arc::clone(&keys.store);
        async move {
            let id = format!("key-{number}");
            store
                .change(add(&id, &format!("token-{number}"), None), "test")
                .await
                .expect("add");
            store
                .change(rotate(&id, &format!("new-{number}"), HOUR), "test")
                .await
                .expect("rotate")
        }
    }))
    .await;

    assert_eq!(
        keys.list()
            .await
            .iter()
            .map(|key| key.tokens.len())
            .collect::<Vec<_>>(),
        [2; 8]
    );
    for number in 0..8 {
        let key = api_key(&format!("key-{number}"));
        keys.wait_for(&format!("token-{number}"), Some(&key)).await;
        keys.wait_for(&format!("new-{number}"), Some(&key)).await;
    }
}

/// The other additions are refused with the key that has the token.
pub async fn concurrent_additions_of_one_token_add_one_key(keys: Keys) {
    let results = join_tasks((0..8).map(|number| {
        let store = Arc::clone(&keys.store);
        async move {
            store
                .change(add(&format!("key-{number}"), "token", None), "test")
                .await
        }
    }));
    let results = results.await;

    let [added] = &keys.listed_keys().await[..] else {
        panic!("one key")
    };
    let is_refused = |error: &ApiKeyChangeError| match error {
        ApiKeyChangeError::Refused(ApiKeyRefusal::TokenTaken(owner)) => owner == added,
        _ => false,
    };
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        1,
        "{results:?}"
    );
    assert_eq!(
        results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .filter(|error| is_refused(error))
            .count(),
        7
    );
}
