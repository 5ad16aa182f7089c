//! The contracts of `ApiKeyDirectory`, `ApiKeyStore`, `ApiKeySource`, `ApiKeyTarget` and `ApiKeyUses`.

mod directory {
    use std::sync::Arc;

    use animal_store_app::ports::ApiKeyDirectory;
    use animal_store_test_servers::RedisSpace;
    use secrecy::{ExposeSecret, SecretString};

    use crate::setup::{Keys, long_wait};

    async fn setup(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, RedisSpace) {
        let space = RedisSpace::new();
        let keys = Keys::at(space.url(), long_wait(space.prefix()));
        for (token, number) in tokens.iter().zip(1..) {
            keys.add(&format!("key-{number}"), token.expose_secret()).await;
        }
        (Arc::new(keys.directory().await), space)
    }

    animal_store_app::api_key_directory_contract!(setup);
}

mod store {
    use std::sync::Arc;

    use animal_store_app::test_support::contract::api_key_store::Keys as Contract;
    use animal_store_test_servers::RedisSpace;

    use crate::setup::{Keys, long_wait};

    async fn setup() -> (Contract, RedisSpace) {
        let space = RedisSpace::new();
        let keys = Keys::at(space.url(), long_wait(space.prefix()));
        (Contract { directory: Arc::new(keys.directory().await), store: Arc::new(keys.store) }, space)
    }

    animal_store_app::api_key_store_contract!(setup);
}

mod bulk {
    use std::sync::Arc;

    use animal_store_app::test_support::contract::bulk_api_keys::BulkKeys;
    use animal_store_test_servers::RedisSpace;

    use crate::setup::{Keys, long_wait};

    async fn setup() -> (BulkKeys, RedisSpace) {
        let space = RedisSpace::new();
        let store = || Arc::new(Keys::at(space.url(), long_wait(space.prefix())).store);
        (BulkKeys { source: store(), target: store(), store: store() }, space)
    }

    animal_store_app::bulk_api_keys_contract!(setup);
}

mod uses {
    use std::sync::Arc;

    use animal_store_app::test_support::contract::api_key_uses::Uses;
    use animal_store_test_servers::RedisSpace;

    use crate::setup::{Keys, frequent_writes};

    async fn setup() -> (Uses, RedisSpace) {
        let space = RedisSpace::new();
        let keys = Keys::at(space.url(), frequent_writes(space.prefix()));
        let instances = [(); 2].map(|()| Arc::new(keys.uses().recorder()) as Arc<_>);
        (Uses { instances, store: Arc::new(keys.store) }, space)
    }

    animal_store_app::api_key_uses_contract!(setup);
}
