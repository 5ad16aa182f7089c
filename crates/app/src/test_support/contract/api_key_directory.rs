//! The contract of [`ApiKeyDirectory`]. Each rule gets a directory that contains the keys of [`known_tokens`].

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use crate::{ApiKey, ApiKeyDigest, ports::ApiKeyDirectory};

/// Writes one test for each rule of the contract. `setup` is an async function that takes the tokens to register
/// (`Vec<SecretString>`). It returns the directory as `Arc<dyn ApiKeyDirectory>`, and a guard that is dropped after the
/// test.
#[macro_export]
macro_rules! api_key_directory_contract {
    ($setup:expr) => {
        $crate::contract_tests!(
            api_key_directory, $setup($crate::test_support::contract::api_key_directory::known_tokens());
            each_registered_token_belongs_to_a_different_key,
            an_unregistered_token_is_none,
        );
    };
}

type Directory = Arc<dyn ApiKeyDirectory>;

/// The tokens that the setup registers, one key each: short, long, and some that differ in one character.
pub fn known_tokens() -> Vec<SecretString> {
    let longest = "x".repeat(512);
    [
        "a", "b", "token-1", "token-2", "Token-1", "dG9rZW4=", &longest,
    ]
    .map(SecretString::from)
    .into()
}

async fn find(directory: &Directory, token: &SecretString) -> Option<Arc<ApiKey>> {
    directory.find(ApiKeyDigest::of(token)).await.expect("find")
}

/// Logs and metrics can distinguish the keys.
pub async fn each_registered_token_belongs_to_a_different_key(directory: Directory) {
    let mut ids = Vec::new();
    for token in known_tokens() {
        let key = find(&directory, &token).await;
        let id = key
            .unwrap_or_else(|| panic!("{} is not found", token.expose_secret()))
            .id
            .clone();
        assert!(!ids.contains(&id), "{id:?} is the id of two keys");
        ids.push(id);
    }
}

/// This includes similar tokens, and the ids and digests of keys.
pub async fn an_unregistered_token_is_none(directory: Directory) {
    let key = find(&directory, &known_tokens()[0]).await.expect("a key");
    let digest = format!("{:02x?}", ApiKeyDigest::of(&known_tokens()[0]).0)
        .replace(['[', ']', ',', ' '], "");

    for token in [
        "",
        "A",
        "token",
        "token-",
        "token-11",
        "dG9rZW4",
        "*",
        key.id.as_str(),
        &digest,
    ] {
        assert_eq!(find(&directory, &token.into()).await, None, "{token:?}");
    }
}
