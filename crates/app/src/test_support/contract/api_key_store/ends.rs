//! Keys and tokens that end.

use std::time::{Duration, Instant};

use super::{HOUR, Keys, token};
use crate::ApiKeyId;

/// Neither creates one.
pub async fn an_unknown_key_is_neither_revoked_nor_rotated(keys: Keys) {
    keys.add("a", "token-a", None).await;
    let list = keys.list().await;

    for id in ["b", "", "token-a", "*"].map(ApiKeyId::new) {
        assert_eq!(keys.store.revoke(&id).await.expect("revoke"), None);
        assert_eq!(keys.store.rotate(&id, token("token-b", None), HOUR).await.expect("rotate"), None);
    }
    assert_eq!(keys.list().await, list);
    assert_eq!(keys.find("token-b").await, None);
}

/// Those in their grace included; other keys stay.
pub async fn a_revoked_key_is_gone_with_every_token(keys: Keys) {
    let key = keys.add("a", "token-1", None).await;
    keys.rotate("a", "token-2", HOUR).await;
    keys.rotate("a", "token-3", HOUR).await;
    let other = keys.add("b", "token-b", None).await;
    for text in ["token-1", "token-2", "token-3"] {
        keys.find_comes_to(text, Some(&key)).await;
    }

    assert_eq!(keys.store.revoke(&key.id).await.expect("revoke"), Some(key.clone()));
    for text in ["token-1", "token-2", "token-3"] {
        keys.find_comes_to(text, None).await;
    }
    assert_eq!(keys.list().await.iter().map(|entry| &entry.key).collect::<Vec<_>>(), [&other]);
    assert_eq!(keys.find("token-b").await.as_deref(), Some(&other));
    assert_eq!(keys.store.revoke(&key.id).await.expect("revoke"), None, "there is nothing left to revoke");
}

/// As the token of another key.
pub async fn a_revoked_token_may_be_added_again(keys: Keys) {
    let key = keys.add("a", "token-a", None).await;
    keys.store.revoke(&key.id).await.expect("revoke");
    keys.find_comes_to("token-a", None).await;

    let again = keys.add("b", "token-a", None).await;
    keys.find_comes_to("token-a", Some(&again)).await;
}

/// For the store and for directories.
pub async fn a_token_ends_with_its_lifetime(keys: Keys) {
    let start = Instant::now();
    let lifetime = Duration::from_millis(300);
    let key = keys.add("a", "token-a", Some(lifetime)).await;
    keys.add("b", "token-b", None).await;

    if keys.find("token-a").await.is_none() {
        assert!(start.elapsed() >= lifetime, "it ended early");
    }
    keys.find_comes_to("token-a", None).await;
    assert!(start.elapsed() >= lifetime, "it ended early");
    assert!(keys.list().await.iter().all(|entry| entry.key != key));
    assert!(keys.find("token-b").await.is_some());
}

/// It is not there to be revoked, and its token can be added again.
pub async fn a_key_whose_tokens_have_ended_is_gone(keys: Keys) {
    let key = keys.add("a", "token-a", Some(Duration::from_millis(1))).await;
    keys.find_comes_to("token-a", None).await;

    assert_eq!(keys.store.rotate(&key.id, token("token-b", None), HOUR).await.expect("rotate"), None);
    assert_eq!(keys.store.revoke(&key.id).await.expect("revoke"), None);
    assert_eq!(keys.list().await, []);
    let again = keys.add("b", "token-a", None).await;
    keys.find_comes_to("token-a", Some(&again)).await;
}

/// Whatever the key that it belonged to before goes through.
pub async fn a_token_that_came_to_another_key_is_that_key_s_alone(keys: Keys) {
    let ended = keys.add("a", "token-1", Some(Duration::from_millis(1))).await;
    let rotated = keys.add("b", "token-2", None).await;
    keys.rotate("b", "token-b", Duration::ZERO).await;
    keys.find_comes_to("token-1", None).await;
    keys.find_comes_to("token-2", None).await;
    let heirs = [keys.add("c", "token-1", None).await, keys.add("d", "token-2", None).await];

    let taken = keys.store.rotate(&ended.id, token("new", None), Duration::ZERO).await.expect("rotate");
    assert_eq!(taken, None, "it has no token");
    assert_eq!(keys.rotate("b", "token-c", Duration::ZERO).await, rotated);
    assert_eq!(keys.store.revoke(&ended.id).await.expect("revoke"), None);
    assert_eq!(keys.store.revoke(&rotated.id).await.expect("revoke"), Some(rotated));
    assert_eq!(keys.list().await.iter().map(|entry| &entry.key).collect::<Vec<_>>(), heirs.iter().collect::<Vec<_>>());
    for (text, heir) in ["token-1", "token-2"].into_iter().zip(&heirs) {
        keys.find_comes_to(text, Some(heir)).await;
    }

    assert_eq!(keys.store.revoke(&heirs[0].id).await.expect("revoke").as_ref(), Some(&heirs[0]));
    keys.find_comes_to("token-1", None).await;
}
