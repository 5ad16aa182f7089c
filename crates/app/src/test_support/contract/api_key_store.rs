//! What [`ApiKeyStore`] promises, to those who change keys and to those who look them up.
#![expect(clippy::missing_panics_doc, reason = "a rule that is broken panics: that is what it is for")]

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiToken, Scope,
    ports::{Added, ApiKeyDirectory, ApiKeyStore, ApiKeyStoreError, NewToken, TokenEntry},
    test_support::api_key,
};

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`Keys`] over an empty
/// store, and a guard that is dropped when the test ends.
#[macro_export]
macro_rules! api_key_store_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            api_key_store, $setup();
            an_empty_store_lists_nothing,
            an_added_token_is_found_with_its_key,
            an_added_token_is_listed,
            a_token_that_exists_stays_as_it_is,
            an_id_that_is_taken_is_refused,
            an_unknown_key_is_neither_revoked_nor_rotated,
            a_revoked_key_is_gone_with_every_token,
            a_revoked_token_may_be_added_again,
            a_rotated_key_has_two_tokens_until_the_grace_ends,
            a_rotation_without_grace_ends_the_old_token,
            a_grace_lengthens_no_life,
            a_new_token_ends_with_the_one_before_it_or_as_it_is_told,
            a_token_that_exists_is_no_new_token_of_a_rotation,
            a_token_ends_with_its_lifetime,
            a_key_whose_tokens_have_ended_is_gone,
            a_token_that_came_to_another_key_is_that_key_s_alone,
            keys_are_listed_by_id_and_their_tokens_by_age,
            concurrent_changes_are_all_made,
            of_concurrent_additions_of_a_token_one_is_made,
            no_token_outlives_a_revocation_that_meets_a_rotation,
        );
    };
}

/// A store, and a directory over the same keys.
pub struct Keys {
    /// Changes keys.
    pub store: Arc<dyn ApiKeyStore>,
    /// Finds them.
    pub directory: Arc<dyn ApiKeyDirectory>,
}

const HOUR: Duration = Duration::from_hours(1);
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

fn token(text: &str, lifetime: Option<Duration>) -> NewToken {
    NewToken::new(&ApiToken::from_outside(text.into()).expect("a token"), lifetime)
}

fn digest(text: &str) -> ApiKeyDigest {
    token(text, None).digest
}

impl Keys {
    async fn add(&self, id: &str, text: &str, lifetime: Option<Duration>) -> ApiKey {
        let key = api_key(id);
        assert_eq!(self.store.add(key.clone(), token(text, lifetime)).await.expect("add"), Added::New);
        key
    }

    async fn rotate(&self, id: &str, text: &str, grace: Duration) -> ApiKey {
        let key = self.store.rotate(&ApiKeyId::new(id), token(text, None), grace).await.expect("rotate");
        key.expect("there is such a key")
    }

    async fn list(&self) -> Vec<TokenEntry> {
        self.store.list().await.expect("list")
    }

    async fn find(&self, text: &str) -> Option<Arc<ApiKey>> {
        self.directory.find(digest(text)).await.expect("find")
    }

    /// A directory follows the store; it does not wait for it.
    async fn find_comes_to(&self, text: &str, expected: Option<&ApiKey>) {
        let start = Instant::now();
        while self.find(text).await.as_deref() != expected {
            assert!(start.elapsed() < PATIENCE, "{text}: {:?} instead of {expected:?}", self.find(text).await);
            tokio::task::yield_now().await;
        }
    }
}

fn assert_about(actual: Option<SystemTime>, expected: SystemTime) {
    let actual = actual.expect("a time");
    let apart = actual.duration_since(expected).unwrap_or_else(|error| error.duration());
    assert!(apart < Duration::from_mins(1), "{actual:?} instead of {expected:?}");
}

/// Nothing is there that nobody put there.
pub async fn an_empty_store_lists_nothing(keys: Keys) {
    assert_eq!(keys.list().await, []);
    assert_eq!(keys.find("token-a").await, None);
}

/// With its label and scopes, also where somebody asked for it before.
pub async fn an_added_token_is_found_with_its_key(keys: Keys) {
    assert_eq!(keys.find("token-a").await, None);
    let key = ApiKey { scopes: [Scope::Read].into_iter().collect(), ..api_key("key") };
    keys.store.add(key.clone(), token("token-a", None)).await.expect("add");

    keys.find_comes_to("token-a", Some(&key)).await;
    assert_eq!(keys.find("token-b").await, None);
}

/// With what may be shown of it.
pub async fn an_added_token_is_listed(keys: Keys) {
    let now = SystemTime::now();
    let endless = keys.add("a", "0123456789-endless", None).await;
    let ending = keys.add("b", "0123456789-ending", Some(HOUR)).await;

    let list = keys.list().await;
    assert_eq!(list.iter().map(|entry| &entry.key).collect::<Vec<_>>(), [&endless, &ending]);
    assert_eq!(list.iter().map(|entry| entry.last_four.as_str()).collect::<Vec<_>>(), ["less", "ding"]);
    for entry in &list {
        assert_about(Some(entry.created), now);
    }
    assert_eq!(list[0].expires, None);
    assert_about(list[1].expires, now + HOUR);
}

/// Whatever else the second addition says.
pub async fn a_token_that_exists_stays_as_it_is(keys: Keys) {
    let key = keys.add("a", "token-a", None).await;
    let list = keys.list().await;

    let again = keys.store.add(api_key("b"), token("token-a", Some(HOUR))).await.expect("add");
    assert_eq!(again, Added::Exists(key));
    assert_eq!(keys.list().await, list);
}

/// An id names one key.
pub async fn an_id_that_is_taken_is_refused(keys: Keys) {
    keys.add("a", "token-a", None).await;
    let list = keys.list().await;

    let error = keys.store.add(api_key("a"), token("token-b", None)).await.expect_err("the id is taken");
    assert!(matches!(error, ApiKeyStoreError::Conflict(_)), "{error:?}");
    assert_eq!(keys.list().await, list);
    assert_eq!(keys.find("token-b").await, None);
}

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

/// Whatever order they came in.
pub async fn keys_are_listed_by_id_and_their_tokens_by_age(keys: Keys) {
    keys.add("b", "0123456789abcdef-b--1", None).await;
    keys.add("c", "0123456789abcdef-c--1", None).await;
    keys.add("a", "0123456789abcdef-a--1", None).await;
    keys.rotate("b", "0123456789abcdef-b--2", HOUR).await;

    let list = keys.list().await;
    let shown: Vec<_> = list.iter().map(|entry| (entry.key.id.as_str(), &entry.last_four[1..])).collect();
    assert_eq!(shown, [("a", "--1"), ("b", "--1"), ("b", "--2"), ("c", "--1")]);
}

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
    assert_eq!(results.iter().filter(|&result| *result == Added::New).count(), 1);
    assert_eq!(results.iter().filter(|&result| *result == Added::Exists(entry.key.clone())).count(), 7);
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
