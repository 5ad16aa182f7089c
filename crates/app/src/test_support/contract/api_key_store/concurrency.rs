//! Several who change keys at the same time.

use std::{sync::Arc, time::Duration};

use super::{HOUR, Keys, token};
use crate::{ports::AddedKey, test_support::api_key};

/// None is lost, and none is half made.
pub async fn concurrent_changes_are_all_made(keys: Keys) {
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let store = Arc::clone(&keys.store);
            tokio::spawn(async move {
                let key = api_key(&format!("key-{number}"));
                store.add(key.clone(), token(&format!("token-{number}"), None)).await.expect("add");
                store.rotate(&key.id, token(&format!("new-{number}"), None), HOUR).await.expect("rotate")
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.expect("the task").is_some());
    }

    assert_eq!(keys.list().await.len(), 16);
    for number in 0..8 {
        let key = api_key(&format!("key-{number}"));
        keys.find_comes_to(&format!("token-{number}"), Some(&key)).await;
        keys.find_comes_to(&format!("new-{number}"), Some(&key)).await;
    }
}

/// The others learn whose it is.
pub async fn of_concurrent_additions_of_a_token_one_is_made(keys: Keys) {
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let store = Arc::clone(&keys.store);
            tokio::spawn(async move { store.add(api_key(&format!("key-{number}")), token("token", None)).await })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("the task").expect("add"));
    }

    let [entry] = &keys.list().await[..] else { panic!("one key") };
    assert_eq!(results.iter().filter(|&result| *result == AddedKey::New).count(), 1);
    assert_eq!(results.iter().filter(|&result| *result == AddedKey::Existing(entry.key.clone())).count(), 7);
}

/// Whichever comes first.
pub async fn no_token_outlives_a_revocation_that_meets_a_rotation(keys: Keys) {
    for number in 0..50 {
        let key = keys.add(&format!("key-{number}"), &format!("token-{number}"), None).await;
        let (store, id) = (Arc::clone(&keys.store), key.id.clone());
        let new = token(&format!("new-{number}"), None);
        let rotation = tokio::spawn(async move { store.rotate(&id, new, Duration::ZERO).await });

        assert_eq!(keys.store.revoke(&key.id).await.expect("revoke"), Some(key));
        rotation.await.expect("the task").expect("rotate");
        assert_eq!(keys.list().await, []);
        keys.find_comes_to(&format!("new-{number}"), None).await;
    }
}
