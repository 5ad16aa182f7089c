//! The contracts of `ApiKeyDirectory`, `ApiKeyStore` and `ApiKeyUses`.

use std::sync::Arc;

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::{
    ports::ApiKeyDirectory,
    test_support::contract::{api_key_store, api_key_uses::Uses},
};
use animal_store_test_servers::RedisSpace;
use prometheus_client::registry::Registry;
use secrecy::{ExposeSecret, SecretString};

use crate::setup::{Keys, frequent_writes, long_wait};

fn keys(settings: fn(&str) -> RedisSettings) -> (Keys, RedisSpace) {
    let space = RedisSpace::new();
    (Keys::at(space.url(), settings(space.prefix())), space)
}

async fn directory(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, RedisSpace) {
    let (keys, space) = keys(long_wait);
    for (token, number) in tokens.iter().zip(1..) {
        keys.add(&format!("key-{number}"), token.expose_secret()).await;
    }
    (Arc::new(keys.directory().await), space)
}

async fn store() -> (api_key_store::Keys, RedisSpace) {
    let (keys, space) = keys(long_wait);
    (api_key_store::Keys { directory: Arc::new(keys.directory().await), store: Arc::new(keys.store) }, space)
}

async fn uses() -> (Uses, RedisSpace) {
    let (keys, space) = keys(frequent_writes);
    let instances = [(); 2].map(|()| Arc::new(keys.uses(&mut Registry::default()).0) as Arc<_>);
    (Uses { instances, store: Arc::new(keys.store) }, space)
}

animal_store_app::api_key_directory_contract!(directory);
animal_store_app::api_key_store_contract!(store);
animal_store_app::api_key_uses_contract!(uses);
