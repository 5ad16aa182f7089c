use std::time::UNIX_EPOCH;

use super::*;
use crate::{
    ApiKeyDigest, ApiKeyLabel, IssuedToken, Scope,
    ports::{ChangedApiKey, MockApiKeyStore},
    test_support::{
        api_key,
        key_changes::{add, new_token, revoke, rotate},
    },
};

const BY: &str = "user@host";

fn issued(key: ApiKey, expires: &[Option<SystemTime>]) -> IssuedApiKey {
    let token = |&expires: &Option<SystemTime>| IssuedToken {
        digest: ApiKeyDigest([0; 32]),
        last_four: "abcd".to_owned(),
        created: UNIX_EPOCH,
        expires,
    };
    let tokens = expires.iter().map(token).collect();
    IssuedApiKey { key, tokens }
}

/// A store that expects this change by [`BY`].
fn store(
    expected: ApiKeyChange,
    result: Result<ChangedApiKey, ApiKeyChangeError>,
) -> Arc<MockApiKeyStore> {
    let mut store = MockApiKeyStore::new();
    store
        .expect_change()
        .withf(move |change, by| *change == expected && by == BY)
        .return_once(|_, _| result);
    Arc::new(store)
}

fn changed(before: Option<IssuedApiKey>, after: Option<IssuedApiKey>) -> ChangedApiKey {
    let at = UNIX_EPOCH;
    ChangedApiKey { before, after, at }
}

async fn issue(
    result: Result<ChangedApiKey, ApiKeyChangeError>,
) -> Result<IssueOutcome, ApiKeyChangeError> {
    IssueApiKey::new(store(add("key", "token", None), result))
        .execute(&api_key("key"), new_token("token", None), BY)
        .await
}

async fn same_label(listed: StoreResult<Vec<IssuedApiKey>>) -> Vec<ApiKeyId> {
    let mut store = MockApiKeyStore::new();
    store.expect_list().return_once(|| listed);
    let issue = IssueApiKey::new(Arc::new(store));
    issue.same_label(&api_key("key")).await
}

#[tokio::test]
async fn the_other_keys_with_a_label_are_found_as_far_as_keys_can_be_listed() {
    let namesake = ApiKey {
        label: api_key("key").label,
        ..api_key("namesake")
    };
    let expected = vec![namesake.id.clone()];
    let listed = [api_key("key"), api_key("other"), namesake];
    let listed = listed.map(|key| issued(key, &[None])).into();
    assert_eq!(same_label(Ok(listed)).await, expected);
    assert_eq!(same_label(Err(StoreFailure::Timeout)).await, []);
}

#[tokio::test]
async fn a_token_of_a_key_with_the_same_label_and_scopes_is_registered_once() {
    let owner = ApiKey {
        id: api_key("owner").id,
        ..api_key("key")
    };
    let other_label = ApiKey {
        label: ApiKeyLabel::parse("other").unwrap(),
        ..owner.clone()
    };
    let fewer_scopes = ApiKey {
        scopes: [Scope::Read].into_iter().collect(),
        ..owner.clone()
    };
    for (owner, is_same) in [(owner, true), (other_label, false), (fewer_scopes, false)] {
        let refusal = ApiKeyRefusal::TokenTaken(owner.clone());
        let outcome = issue(Err(refusal.into())).await;
        assert_eq!(outcome.is_ok(), is_same, "{outcome:?}");
        if let Ok(outcome) = outcome {
            assert_eq!(outcome, IssueOutcome::AlreadyRegistered(owner));
        }
    }
    let added = changed(None, Some(issued(api_key("key"), &[None])));
    assert_eq!(issue(Ok(added)).await.unwrap(), IssueOutcome::Added);
}

#[tokio::test]
async fn a_rotation_returns_the_key_and_the_end_of_its_old_tokens() {
    let grace = Duration::from_mins(1);
    let end = UNIX_EPOCH + grace;
    let after = issued(api_key("key"), &[Some(end), None]);
    let result = Ok(changed(None, Some(after)));
    let store = store(rotate("key", "token", grace), result);
    let rotated = RotateApiKey::new(store)
        .execute(&api_key("key").id, new_token("token", None), grace, BY)
        .await;
    let expected = RotatedApiKey {
        key: api_key("key"),
        old_tokens_end: end,
    };
    assert_eq!(rotated.unwrap(), expected);
}

#[tokio::test]
async fn a_revocation_returns_the_key_that_it_has_removed() {
    let id = api_key("key").id;
    let before = issued(api_key("key"), &[None]);
    let result = Ok(changed(Some(before), None));
    let revoked = RevokeApiKey::new(store(revoke("key"), result))
        .execute(&id, BY)
        .await;
    assert_eq!(revoked.unwrap(), api_key("key"));

    let result = Err(ApiKeyRefusal::UnknownId.into());
    let refused = RevokeApiKey::new(store(revoke("key"), result))
        .execute(&id, BY)
        .await;
    let message = refused.unwrap_err().to_string();
    assert_eq!(message, "no API key has this id");
}

#[tokio::test]
async fn keys_whose_uses_cannot_be_read_are_listed_without_them() {
    let mut store = MockApiKeyStore::new();
    store.expect_list().return_once(|| Ok(Vec::new()));
    store
        .expect_list_uses()
        .return_once(|| Err(StoreFailure::Timeout));
    let listed = ListApiKeys::new(Arc::new(store)).execute().await.unwrap();
    assert!(listed.uses.is_err());
}
