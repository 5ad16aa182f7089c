//! Revoked keys and expired tokens.

use std::time::{Duration, Instant};

use super::{HOUR, Keys, token};

/// Neither call adds the key.
pub async fn an_unknown_key_is_neither_revoked_nor_rotated(keys: Keys) {
    keys.add("a", "token-a", None).await;
    let list = keys.list().await;

    for id in ["b", "", "token-a", "*"] {
        assert_eq!(keys.revoke(id).await, None);
        assert_eq!(keys.try_rotate(id, token("token-b", None), HOUR).await, None);
    }
    assert_eq!(keys.list().await, list);
    assert_eq!(keys.find("token-b").await, None);
}

/// This includes tokens within their grace period. Other keys are not changed.
pub async fn a_revocation_ends_every_token_of_the_key(keys: Keys) {
    let key = keys.add("a", "token-1", None).await;
    keys.rotate("a", "token-2", HOUR).await;
    keys.rotate("a", "token-3", HOUR).await;
    let other = keys.add("b", "token-b", None).await;
    for text in ["token-1", "token-2", "token-3"] {
        keys.wait_for(text, Some(&key)).await;
    }

    assert_eq!(keys.revoke("a").await, Some(key));
    for text in ["token-1", "token-2", "token-3"] {
        keys.wait_for(text, None).await;
    }
    assert_eq!(keys.find("token-b").await.as_deref(), Some(&other));
    assert_eq!(keys.listed_keys().await, [other]);
    assert_eq!(keys.revoke("a").await, None, "it was revoked before");
}

/// It can then belong to another key.
pub async fn a_revoked_token_can_be_added_again(keys: Keys) {
    keys.add("a", "token-a", None).await;
    keys.revoke("a").await;
    keys.wait_for("token-a", None).await;

    let again = keys.add("b", "token-a", None).await;
    keys.wait_for("token-a", Some(&again)).await;
}

/// It expires in the store and in the directory.
pub async fn a_token_expires_after_its_lifetime(keys: Keys) {
    let start = Instant::now();
    let lifetime = Duration::from_millis(300);
    let key = keys.add("a", "token-a", Some(lifetime)).await;
    keys.add("b", "token-b", None).await;

    // The directory follows the store with a delay.
    while start.elapsed() < lifetime && keys.find("token-a").await.is_none() {
        tokio::task::yield_now().await;
    }
    keys.wait_for("token-a", None).await;
    assert!(start.elapsed() >= lifetime, "it expired early");
    assert!(!keys.listed_keys().await.contains(&key));
    assert!(keys.find("token-b").await.is_some());
}

/// It can be neither rotated nor revoked, and its token can be added again.
pub async fn a_key_without_valid_tokens_does_not_exist(keys: Keys) {
    keys.add("a", "token-a", Some(Duration::from_millis(1))).await;
    while !keys.list().await.is_empty() {
        tokio::task::yield_now().await;
    }
    keys.wait_for("token-a", None).await;

    assert_eq!(keys.try_rotate("a", token("token-b", None), HOUR).await, None);
    assert_eq!(keys.revoke("a").await, None);
    assert_eq!(keys.list().await, []);
    let again = keys.add("b", "token-a", None).await;
    keys.wait_for("token-a", Some(&again)).await;
}

/// Changes of the key that had the token before do not affect it.
pub async fn a_token_that_moved_to_another_key_belongs_to_that_key_only(keys: Keys) {
    keys.add("a", "token-1", Some(Duration::from_millis(1))).await;
    let rotated = keys.add("b", "token-2", None).await;
    keys.rotate("b", "token-b", Duration::ZERO).await;
    keys.wait_for("token-1", None).await;
    keys.wait_for("token-2", None).await;
    let new_keys = [keys.add("c", "token-1", None).await, keys.add("d", "token-2", None).await];

    assert_eq!(keys.try_rotate("a", token("new", None), Duration::ZERO).await, None, "it has no token");
    assert_eq!(keys.rotate("b", "token-c", Duration::ZERO).await, rotated);
    assert_eq!(keys.revoke("a").await, None);
    assert_eq!(keys.revoke("b").await, Some(rotated));
    assert_eq!(keys.listed_keys().await, new_keys);
    for (text, key) in ["token-1", "token-2"].into_iter().zip(&new_keys) {
        keys.wait_for(text, Some(key)).await;
    }

    assert_eq!(keys.revoke("c").await.as_ref(), Some(&new_keys[0]));
    keys.wait_for("token-1", None).await;
}
