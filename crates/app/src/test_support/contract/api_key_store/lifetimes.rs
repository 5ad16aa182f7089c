//! Tokens of one key: grace periods, expiry and revocation.

use std::time::{Duration, Instant};

use super::{HOUR, Keys};
use crate::{
    ApiKey, ApiKeyChange, ApiKeyLabel, ApiKeyRefusal,
    test_support::{
        api_key,
        key_changes::{new_token, revoke, rotate},
        wait_until,
    },
};

/// Both belong to the key, which is not changed.
pub async fn a_rotated_key_has_both_tokens_until_the_grace_ends(keys: Keys) {
    let key = keys.add("a", "token-old", None).await;
    let changed = keys.change(rotate("a", "token-new", HOUR)).await;
    let after = changed.after.expect("the key exists");
    assert_eq!((&after.key, after.tokens.len()), (&key, 2));
    let end = after.tokens[0].expires.expect("the grace period ends");
    let difference = (changed.at + HOUR)
        .duration_since(end)
        .expect("rounded down");
    assert!(difference < Duration::from_millis(1), "{end:?}");
    keys.wait_for("token-new", Some(&key)).await;
    assert_eq!(keys.find("token-old").await.as_deref(), Some(&key));
    assert_eq!(keys.list().await, [after]);

    keys.change(rotate("a", "token-newest", Duration::ZERO))
        .await;
    for text in ["token-old", "token-new"] {
        keys.wait_for(text, None).await;
    }
    keys.wait_for("token-newest", Some(&key)).await;
    assert_eq!(keys.list().await[0].tokens.len(), 1);
}

/// This includes tokens within their grace period. Other keys are not changed, and the token can be added again.
pub async fn a_revocation_ends_every_token_of_the_key(keys: Keys) {
    let key = keys.add("a", "token-1", None).await;
    keys.change(rotate("a", "token-2", HOUR)).await;
    keys.change(rotate("a", "token-3", HOUR)).await;
    let other = keys.add("b", "token-b", None).await;
    for text in ["token-1", "token-2", "token-3"] {
        keys.wait_for(text, Some(&key)).await;
    }

    let changed = keys.change(revoke("a")).await;
    assert_eq!(
        (changed.before.map(|before| before.key), changed.after),
        (Some(key), None)
    );
    for text in ["token-1", "token-2", "token-3"] {
        keys.wait_for(text, None).await;
    }
    assert_eq!(keys.listed_keys().await, [other]);
    keys.assert_refused(revoke("a"), &ApiKeyRefusal::UnknownId)
        .await;

    let label = ApiKeyLabel::parse("another label").expect("a label");
    let again = ApiKey {
        label,
        ..api_key("a")
    };
    keys.change(ApiKeyChange::Add(again.clone(), new_token("token-1", None)))
        .await;
    keys.wait_for("token-1", Some(&again)).await;
}

/// It expires in the store and in the directory. Its key does not exist then, and its token can be added again.
pub async fn a_token_expires_by_the_clock_of_the_store(keys: Keys) {
    let start = Instant::now();
    let lifetime = Duration::from_millis(300);
    keys.add("a", "token-a", Some(lifetime)).await;
    let other = keys.add("b", "token-b", None).await;

    // The directory follows the store with a delay.
    while start.elapsed() < lifetime && keys.find("token-a").await.is_none() {
        tokio::task::yield_now().await;
    }
    keys.wait_for("token-a", None).await;
    assert!(start.elapsed() >= lifetime, "it expired early");
    // On a busy machine, the directory may not have seen the token yet, and it has been added long after the start.
    wait_until("it expires in the store", async || {
        keys.listed_keys().await == [other.clone()]
    })
    .await;
    for change in [revoke("a"), rotate("a", "token-c", HOUR)] {
        keys.assert_refused(change, &ApiKeyRefusal::UnknownId).await;
    }
    for (id, text) in [("c", "token-a"), ("a", "token-c")] {
        let again = keys.add(id, text, None).await;
        keys.wait_for(text, Some(&again)).await;
    }
}

/// Changes of the key that had the token before do not affect it.
pub async fn a_token_that_moved_to_another_key_belongs_to_that_key_only(keys: Keys) {
    keys.add("a", "token-1", Some(Duration::from_millis(1)))
        .await;
    let rotated = keys.add("b", "token-2", None).await;
    keys.change(rotate("b", "token-b", Duration::ZERO)).await;
    keys.wait_for("token-1", None).await;
    keys.wait_for("token-2", None).await;
    let new_keys = [
        keys.add("c", "token-1", None).await,
        keys.add("d", "token-2", None).await,
    ];

    for change in [revoke("a"), rotate("a", "new", Duration::ZERO)] {
        keys.assert_refused(change, &ApiKeyRefusal::UnknownId).await;
    }
    keys.change(rotate("b", "token-c", Duration::ZERO)).await;
    assert_eq!(
        keys.change(revoke("b"))
            .await
            .before
            .map(|before| before.key),
        Some(rotated)
    );
    assert_eq!(keys.listed_keys().await, new_keys);
    for (text, key) in ["token-1", "token-2"].into_iter().zip(&new_keys) {
        keys.wait_for(text, Some(key)).await;
    }
    keys.change(revoke("c")).await;
    keys.wait_for("token-1", None).await;
}
