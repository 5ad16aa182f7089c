//! API keys in a database of their own.

use std::sync::Arc;

use animal_store_adapter_kit::{ApiKeySnapshot, ApiKeyUseRecord};
use animal_store_adapters_postgres::{PgApiKeyStore, PgStorage, PostgresSettings};
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyDigest, ApiToken, NewToken,
    ports::{ApiKeyDirectory, ApiKeyStore, StoreFailure},
    test_support::api_key,
};
use animal_store_test_servers::PgDatabase;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    outcomes::wait_until,
    store::{endpoint, settings, start_storage},
};

/// A storage, and a store of API keys beside it, as in a command.
pub(crate) struct KeySpace {
    pub(crate) store: PgApiKeyStore,
    pub(crate) storage: PgStorage,
}

impl KeySpace {
    pub(crate) async fn of(database: &PgDatabase) -> Self {
        Self::at(database.url(), database.url(), settings()).await
    }

    /// The instance uses the first URL, and the command the second one.
    pub(crate) async fn at(url: &str, direct: &str, settings: PostgresSettings) -> Self {
        let (storage, _) = start_storage(endpoint(url), endpoint(direct), settings).await.expect("a storage");
        Self { store: key_store(direct), storage }
    }

    pub(crate) fn directory(&self) -> ApiKeySnapshot {
        self.storage.start_api_keys(&mut Registry::default()).0
    }

    pub(crate) fn uses(&self) -> (ApiKeyUseRecord, JoinHandle<()>) {
        self.storage.start_api_key_uses(&mut Registry::default())
    }

    pub(crate) async fn add(&self, id: &str, token: &str) -> ApiKey {
        self.store.change(add(id, token)).await.expect("add").after.expect("the key").key
    }

    pub(crate) async fn revoke(&self, id: &str) {
        self.store.change(revoke(id)).await.expect("revoked");
    }
}

pub(crate) fn key_store(url: &str) -> PgApiKeyStore {
    PgApiKeyStore::new(endpoint(url), settings())
}

pub(crate) fn add(id: &str, token: &str) -> ApiKeyChange {
    let token = NewToken::new(&ApiToken::parse(token.into()).expect("a token"), None);
    ApiKeyChange::Add(api_key(id), token)
}

pub(crate) fn revoke(id: &str) -> ApiKeyChange {
    ApiKeyChange::Revoke(api_key(id).id)
}

pub(crate) async fn find(directory: &ApiKeySnapshot, token: &str) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}

/// Waits until a token has a key, or has none. A failed lookup is neither.
pub(crate) async fn wait_for(directory: &ApiKeySnapshot, token: &str, exists: bool) {
    let what = format!("{token}: {exists}");
    wait_until(&what, async || find(directory, token).await.is_ok_and(|found| found.is_some() == exists)).await;
}
