//! The contracts of API keys.

use animal_store_app::test_support::contract::{api_key_store, api_key_uses::Uses};

use crate::prelude::*;

async fn store() -> (api_key_store::Keys, RedisServer) {
    let server = RedisServer::start();
    let keys = Keys::with(&server.url(), long_wait());
    let directory = Arc::new(keys.directory().await);
    let store = Arc::new(keys.store);
    (api_key_store::Keys { store, directory }, server)
}

fn uses() -> (Uses, RedisServer) {
    let server = RedisServer::start();
    let often = RedisSettings {
        use_interval: Duration::from_millis(10),
        ..long_wait()
    };
    let keys = Keys::with(&server.url(), often);
    let instances = [(); 2].map(|()| Arc::new(keys.uses(&mut Registry::default()).0) as Arc<_>);
    let store = Arc::new(keys.store);
    (Uses { instances, store }, server)
}

animal_store_app::api_key_store_contract!(store);
animal_store_app::api_key_uses_contract!(async || uses());
