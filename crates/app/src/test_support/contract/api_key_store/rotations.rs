//! Rotation: a key gets a new token.

use std::time::{Duration, SystemTime};

use super::{HOUR, Keys, assert_about, token};
use crate::{ApiKeyId, ports::ApiKeyStoreError};

/// Both belong to the key, which is not changed.
pub async fn a_rotated_key_has_two_tokens_until_the_grace_ends(keys: Keys) {
    let now = SystemTime::now();
    let key = keys.add("a", "token-old", None).await;
    assert_eq!(keys.rotate("a", "token-new", HOUR).await, key);

    keys.wait_for("token-new", Some(&key)).await;
    assert_eq!(keys.find("token-old").await.as_deref(), Some(&key));
    let list = keys.list().await;
    assert_eq!(list.len(), 2);
    assert_about(list[0].expires, now + HOUR);
    assert_eq!(list[1].expires, None);
}

/// The new token is valid at once.
pub async fn a_rotation_without_grace_ends_the_old_token(keys: Keys) {
    let key = keys.add("a", "token-old", None).await;
    keys.wait_for("token-old", Some(&key)).await;
    keys.rotate("a", "token-new", Duration::ZERO).await;

    keys.wait_for("token-old", None).await;
    keys.wait_for("token-new", Some(&key)).await;
    assert_eq!(keys.list().await.len(), 1);
}

/// It can only shorten the lifetime. The same holds for a second rotation.
pub async fn a_grace_never_extends_a_lifetime(keys: Keys) {
    let now = SystemTime::now();
    keys.add("a", "token-1", Some(2 * HOUR)).await;
    let rotated = keys.store.rotate(&ApiKeyId::new("a"), token("token-2", None), 10 * HOUR).await.expect("rotate");
    assert_about(keys.list().await[0].expires, now + 2 * HOUR);
    assert_about(rotated.map(|rotated| rotated.old_tokens_end), now + 2 * HOUR);

    let rotated = keys.store.rotate(&ApiKeyId::new("a"), token("token-3", None), HOUR).await.expect("rotate");
    let list = keys.list().await;
    assert_about(list[0].expires, now + HOUR);
    assert_about(list[1].expires, now + HOUR);
    assert_about(rotated.map(|rotated| rotated.old_tokens_end), now + HOUR);

    keys.rotate("a", "token-4", 10 * HOUR).await;
    assert_about(keys.list().await[0].expires, now + HOUR);
}

/// A rotation without a lifetime does not change when the key expires.
pub async fn a_new_token_expires_with_the_old_one_or_after_its_own_lifetime(keys: Keys) {
    let now = SystemTime::now();
    keys.add("a", "token-1", Some(2 * HOUR)).await;
    keys.rotate("a", "token-2", Duration::ZERO).await;
    assert_about(keys.list().await[0].expires, now + 2 * HOUR);

    keys.try_rotate("a", token("token-3", Some(5 * HOUR)), Duration::ZERO).await;
    assert_about(keys.list().await[0].expires, now + 5 * HOUR);
}

/// This holds for a token of the same key and for a token of another key.
pub async fn a_rotation_to_a_token_that_exists_is_refused(keys: Keys) {
    let key = keys.add("a", "token-a", None).await;
    keys.add("b", "token-b", None).await;
    let list = keys.list().await;

    for text in ["token-a", "token-b"] {
        let error = keys.store.rotate(&key.id, token(text, None), HOUR).await.expect_err("the token exists");
        assert!(matches!(error, ApiKeyStoreError::Conflict(_)), "{error:?}");
    }
    assert_eq!(keys.list().await, list);
}
