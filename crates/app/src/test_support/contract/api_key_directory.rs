//! What [`ApiKeyDirectory`] promises. Every rule is given a directory that knows the keys of [`known_tokens`].
#![expect(clippy::missing_panics_doc, reason = "a rule that is broken panics: that is what it is for")]

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use crate::{ApiKey, ApiKeyDigest, ports::ApiKeyDirectory};

/// Writes one test for each rule of the contract. `setup` is an async function that takes the tokens to register
/// (`Vec<SecretString>`) and returns the directory as `Arc<dyn ApiKeyDirectory>`, and a guard that is dropped when
/// the test ends.
#[macro_export]
macro_rules! api_key_directory_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            api_key_directory, $setup($crate::test_support::contract::api_key_directory::known_tokens());
            a_registered_token_is_found,
            every_token_belongs_to_a_key_of_its_own,
            a_key_is_the_same_at_every_look_up,
            a_token_that_is_not_registered_is_none,
            concurrent_look_ups_do_not_mix_keys,
        );
    };
}

type Directory = Arc<dyn ApiKeyDirectory>;

/// The tokens that the setup registers, one key each: short, long, and alike but for one character.
pub fn known_tokens() -> Vec<SecretString> {
    let longest = "x".repeat(512);
    ["a", "b", "token-1", "token-2", "Token-1", "dG9rZW4=", &longest].map(SecretString::from).into()
}

async fn find(directory: &Directory, token: &SecretString) -> Option<Arc<ApiKey>> {
    directory.find(ApiKeyDigest::of(token)).await.expect("find")
}

/// Each of them.
pub async fn a_registered_token_is_found(directory: Directory) {
    for token in known_tokens() {
        assert!(find(&directory, &token).await.is_some(), "{}", token.expose_secret());
    }
}

/// Logs and metrics can tell them apart.
pub async fn every_token_belongs_to_a_key_of_its_own(directory: Directory) {
    let mut ids = Vec::new();
    for token in known_tokens() {
        ids.push(find(&directory, &token).await.expect("a key").id.clone());
    }
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{id:?} is the id of two keys");
    }
}

/// A look-up changes nothing.
pub async fn a_key_is_the_same_at_every_look_up(directory: Directory) {
    for token in known_tokens() {
        let first = find(&directory, &token).await;
        assert_eq!(find(&directory, &token).await, first);
    }
}

/// Neither one that is alike, nor an id or a digest in a token's place.
pub async fn a_token_that_is_not_registered_is_none(directory: Directory) {
    let key = find(&directory, &known_tokens()[0]).await.expect("a key");
    let digest = format!("{:02x?}", ApiKeyDigest::of(&known_tokens()[0]).as_bytes()).replace(['[', ']', ',', ' '], "");

    for token in ["", "A", "token", "token-", "token-11", "dG9rZW4", "*", key.id.as_str(), &digest] {
        assert_eq!(find(&directory, &token.into()).await, None, "{token:?}");
    }
}

/// However many clients there are.
pub async fn concurrent_look_ups_do_not_mix_keys(directory: Directory) {
    let tasks: Vec<_> = known_tokens()
        .into_iter()
        .map(|token| {
            let directory = Arc::clone(&directory);
            tokio::spawn(async move {
                let first = find(&directory, &token).await.expect("a key");
                for _ in 0..100 {
                    assert_eq!(find(&directory, &token).await.as_ref(), Some(&first));
                }
            })
        })
        .collect();

    for task in tasks {
        task.await.expect("the task");
    }
}
