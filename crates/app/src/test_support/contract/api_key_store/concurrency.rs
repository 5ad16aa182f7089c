//! Several programs change keys at the same time.

use std::{sync::Arc, time::Duration};

use super::{HOUR, Keys, token};
use crate::{
    ports::AddedKey,
    test_support::{api_key, join_tasks},
};

/// No change is lost or applied in part.
pub async fn concurrent_changes_are_all_applied(keys: Keys) {
    let rotated = join_tasks((0..8).map(|number| {
        let store = Arc::clone(&keys.store);
        async move {
            let key = api_key(&format!("key-{number}"));
            store.add(key.clone(), token(&format!("token-{number}"), None)).await.expect("add");
            store.rotate(&key.id, token(&format!("new-{number}"), None), HOUR).await.expect("rotate")
        }
    }));
    assert!(rotated.await.iter().all(Option::is_some));

    assert_eq!(keys.list().await.len(), 16);
    for number in 0..8 {
        let key = api_key(&format!("key-{number}"));
        keys.wait_for(&format!("token-{number}"), Some(&key)).await;
        keys.wait_for(&format!("new-{number}"), Some(&key)).await;
    }
}

/// The other additions return the key that has the token.
pub async fn concurrent_additions_of_one_token_add_one_key(keys: Keys) {
    let results = join_tasks((0..8).map(|number| {
        let store = Arc::clone(&keys.store);
        async move { store.add(api_key(&format!("key-{number}")), token("token", None)).await.expect("add") }
    }));
    let results = results.await;

    let [entry] = &keys.list().await[..] else { panic!("one key") };
    assert_eq!(results.iter().filter(|&result| *result == AddedKey::New).count(), 1);
    assert_eq!(results.iter().filter(|&result| *result == AddedKey::Existing(entry.key.clone())).count(), 7);
}

/// This includes the token of a concurrent rotation.
pub async fn no_token_outlives_a_concurrent_revocation(keys: Keys) {
    for number in 0..50 {
        let key = keys.add(&format!("key-{number}"), &format!("token-{number}"), None).await;
        let (store, id) = (Arc::clone(&keys.store), key.id.clone());
        let new = token(&format!("new-{number}"), None);
        let rotation = tokio::spawn(async move { store.rotate(&id, new, Duration::ZERO).await });

        assert_eq!(keys.store.revoke(&key.id).await.expect("revoke"), Some(key));
        rotation.await.expect("the rotation does not panic").expect("rotate");
        assert_eq!(keys.list().await, []);
        keys.wait_for(&format!("new-{number}"), None).await;
    }
}
