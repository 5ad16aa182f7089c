//! The contract of `ApiKeyDirectory`.

use std::sync::Arc;

use animal_store_adapters_memory::MemoryApiKeyDirectory;
use animal_store_app::ports::ApiKeyDirectory;
use secrecy::SecretString;

fn setup(tokens: &[SecretString]) -> (Arc<dyn ApiKeyDirectory>, ()) {
    (Arc::new(MemoryApiKeyDirectory::new(tokens)), ())
}

animal_store_app::api_key_directory_contract!(async |tokens: Vec<_>| setup(&tokens));
