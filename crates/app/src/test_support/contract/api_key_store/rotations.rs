//! Keys that get another token.

use std::time::{Duration, SystemTime};

use super::{HOUR, Keys, assert_about, token};
use crate::{ApiKeyId, ports::ApiKeyStoreError};

/// Both belong to the key as it was.
pub async fn a_rotated_key_has_two_tokens_until_the_grace_ends(keys: Keys) {
    let now = SystemTime::now();
    let key = keys.add("a", "token-old", None).await;
    assert_eq!(keys.rotate("a", "token-new", HOUR).await, key);

    keys.find_comes_to("token-new", Some(&key)).await;
    assert_eq!(keys.find("token-old").await.as_deref(), Some(&key));
    let list = keys.list().await;
    assert_eq!(list.len(), 2);
    assert_about(list[0].expires, now + HOUR);
    assert_eq!(list[1].expires, None);
}

/// At once.
pub async fn a_rotation_without_grace_ends_the_old_token(keys: Keys) {
    let key = keys.add("a", "token-old", None).await;
    keys.find_comes_to("token-old", Some(&key)).await;
    keys.rotate("a", "token-new", Duration::ZERO).await;

    keys.find_comes_to("token-old", None).await;
    keys.find_comes_to("token-new", Some(&key)).await;
    assert_eq!(keys.list().await.len(), 1);
}

/// It ends a token earlier, never later; and so does the grace of a second rotation.
pub async fn a_grace_lengthens_no_life(keys: Keys) {
    let now = SystemTime::now();
    keys.add("a", "token-1", Some(2 * HOUR)).await;
    keys.rotate("a", "token-2", 10 * HOUR).await;
    assert_about(keys.list().await[0].expires, now + 2 * HOUR);

    keys.rotate("a", "token-3", HOUR).await;
    let list = keys.list().await;
    assert_about(list[0].expires, now + HOUR);
    assert_about(list[1].expires, now + HOUR);

    keys.rotate("a", "token-4", 10 * HOUR).await;
    assert_about(keys.list().await[0].expires, now + HOUR);
}

/// A rotation changes the token, not how long the key is good for.
pub async fn a_new_token_ends_with_the_one_before_it_or_as_it_is_told(keys: Keys) {
    let now = SystemTime::now();
    keys.add("a", "token-1", Some(2 * HOUR)).await;
    keys.rotate("a", "token-2", Duration::ZERO).await;
    assert_about(keys.list().await[0].expires, now + 2 * HOUR);

    let longer = token("token-3", Some(5 * HOUR));
    keys.store.rotate(&ApiKeyId::new("a"), longer, Duration::ZERO).await.expect("rotate");
    assert_about(keys.list().await[0].expires, now + 5 * HOUR);
}

/// Neither its own nor that of another key.
pub async fn a_token_that_exists_is_no_new_token_of_a_rotation(keys: Keys) {
    let key = keys.add("a", "token-a", None).await;
    keys.add("b", "token-b", None).await;
    let list = keys.list().await;

    for text in ["token-a", "token-b"] {
        let error = keys.store.rotate(&key.id, token(text, None), HOUR).await.expect_err("the token exists");
        assert!(matches!(error, ApiKeyStoreError::Conflict(_)), "{error:?}");
    }
    assert_eq!(keys.list().await, list);
}
