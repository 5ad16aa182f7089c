//! The contracts of `ApiKeyDirectory`, `ApiKeyStore` and `ApiKeyUses`.

use animal_store_app::test_support::contract::{api_key_store, api_key_uses::Uses};
use secrecy::{ExposeSecret, SecretString};

use crate::prelude::*;

async fn directory(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, RedisServer) {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_wait());
    for (token, number) in tokens.iter().zip(1..) {
        keys.add(&format!("key-{number}"), token.expose_secret())
            .await;
    }
    (Arc::new(keys.directory().await), server)
}

async fn store() -> (api_key_store::Keys, RedisServer) {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_wait());
    (
        api_key_store::Keys {
            directory: Arc::new(keys.directory().await),
            store: Arc::new(keys.store),
        },
        server,
    )
}

async fn uses() -> (Uses, RedisServer) {
    let server = RedisServer::start();
    let often = RedisSettings {
        use_interval: Duration::from_millis(10),
        ..long_wait()
    };
    let keys = Keys::at(&server.url(), often);
    let instances = [(); 2].map(|()| Arc::new(keys.uses(&mut Registry::default()).0) as Arc<_>);
    (
        Uses {
            instances,
            store: Arc::new(keys.store),
        },
        server,
    )
}

animal_store_app::api_key_directory_contract!(directory);
animal_store_app::api_key_store_contract!(store);
animal_store_app::api_key_uses_contract!(uses);
