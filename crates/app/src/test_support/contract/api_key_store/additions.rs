//! Adding and listing keys.

use std::time::SystemTime;

use super::{HOUR, Keys, assert_about, token};
use crate::{
    ApiKey, Scope,
    ports::{AddedKey, ApiKeyStoreError},
    test_support::api_key,
};

/// The directory finds nothing either.
pub async fn an_empty_store_lists_nothing(keys: Keys) {
    assert_eq!(keys.list().await, []);
    assert_eq!(keys.find("token-a").await, None);
}

/// The key has its label and its scopes, even if the directory was queried for the token before.
pub async fn an_added_token_is_found_with_its_key(keys: Keys) {
    assert_eq!(keys.find("token-a").await, None);
    let key = ApiKey { scopes: [Scope::Read].into_iter().collect(), ..api_key("key") };
    keys.store.add(key.clone(), token("token-a", None)).await.expect("add");

    keys.wait_for("token-a", Some(&key)).await;
    assert_eq!(keys.find("token-b").await, None);
}

/// The entry has the last four characters, the creation time and the expiry.
pub async fn an_added_token_is_listed(keys: Keys) {
    let now = SystemTime::now();
    let unlimited = keys.add("a", "0123456789-endless", None).await;
    let limited = keys.add("b", "0123456789-ending", Some(HOUR)).await;

    let list = keys.list().await;
    assert_eq!(keys.listed_keys().await, [unlimited, limited]);
    assert_eq!(list.iter().map(|entry| entry.last_four.as_str()).collect::<Vec<_>>(), ["less", "ding"]);
    for entry in &list {
        assert_about(Some(entry.created), now);
    }
    assert_eq!(list[0].expires, None);
    assert_about(list[1].expires, now + HOUR);
}

/// This holds even if the second addition has another id and another lifetime.
pub async fn a_token_that_exists_is_not_changed_by_an_addition(keys: Keys) {
    let key = keys.add("a", "token-a", None).await;
    let list = keys.list().await;

    let again = keys.store.add(api_key("b"), token("token-a", Some(HOUR))).await.expect("add");
    assert_eq!(again, AddedKey::Existing(key));
    assert_eq!(keys.list().await, list);
}

/// An id identifies one key.
pub async fn an_addition_with_a_taken_id_is_refused(keys: Keys) {
    keys.add("a", "token-a", None).await;
    let list = keys.list().await;

    let error = keys.store.add(api_key("a"), token("token-b", None)).await.expect_err("the id is taken");
    assert!(matches!(error, ApiKeyStoreError::Conflict(_)), "{error:?}");
    assert_eq!(keys.list().await, list);
    assert_eq!(keys.find("token-b").await, None);
}

/// The order of the additions does not matter.
pub async fn keys_are_listed_by_id_and_their_tokens_by_age(keys: Keys) {
    keys.add("b", "0123456789abcdef-b--1", None).await;
    keys.add("c", "0123456789abcdef-c--1", None).await;
    keys.add("a", "0123456789abcdef-a--1", None).await;
    keys.rotate("b", "0123456789abcdef-b--2", HOUR).await;

    let list = keys.list().await;
    let listed: Vec<_> = list.iter().map(|entry| (entry.key.id.as_str(), &entry.last_four[1..])).collect();
    assert_eq!(listed, [("a", "--1"), ("b", "--1"), ("b", "--2"), ("c", "--1")]);
}
