//! The contracts of `ApiKeyDirectory`, `ApiKeyStore`, `ApiKeyUses`, `ApiKeySource` and `ApiKeyTarget`.

mod directory {
    use std::sync::Arc;

    use animal_store_app::ports::ApiKeyDirectory;
    use secrecy::{ExposeSecret, SecretString};

    use crate::keys_support::Keys;

    async fn setup(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, Keys) {
        let keys = Keys::new();
        for (token, number) in tokens.iter().zip(1..) {
            keys.add(&format!("key-{number}"), token.expose_secret()).await;
        }
        (Arc::new(keys.directory()), keys)
    }

    animal_store_app::api_key_directory_contract!(setup);
}

mod store {
    use std::sync::Arc;

    use animal_store_app::test_support::contract::api_key_store::Keys as Contract;
    use tempfile::TempDir;

    use crate::keys_support::Keys;

    async fn setup() -> (Contract, TempDir) {
        let keys = Keys::new();
        (Contract { directory: Arc::new(keys.directory()), store: Arc::new(keys.store) }, keys.folder)
    }

    animal_store_app::api_key_store_contract!(setup);
}

mod uses {
    use std::{sync::Arc, time::Duration};

    use animal_store_app::test_support::contract::api_key_uses::Uses;
    use tempfile::TempDir;

    use crate::keys_support::Keys;

    async fn setup() -> (Uses, TempDir) {
        let keys = Keys::new();
        let instances = [(); 2].map(|()| Arc::new(keys.uses(Duration::from_millis(10)).0.recorder()) as Arc<_>);
        (Uses { instances, store: Arc::new(keys.store) }, keys.folder)
    }

    animal_store_app::api_key_uses_contract!(setup);
}

mod bulk {
    use std::sync::Arc;

    use animal_store_app::test_support::contract::bulk_api_keys::BulkKeys;
    use tempfile::TempDir;

    use crate::keys_support::Keys;

    async fn setup() -> (BulkKeys, TempDir) {
        let keys = Keys::new();
        let store = Arc::new(keys.store);
        (BulkKeys { source: store.clone(), target: store.clone(), store }, keys.folder)
    }

    animal_store_app::bulk_api_keys_contract!(setup);
}
