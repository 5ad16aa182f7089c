//! API keys in a file of their own.

use std::{path::PathBuf, sync::Arc, time::Duration};

use animal_store_adapter_kit::{ApiKeySnapshot, ApiKeyUseRecord};
use animal_store_adapters_sqlite::{SqliteApiKeyStore, SqliteFile};
pub(crate) use animal_store_app::test_support::key_changes::{add, new_token, revoke};
use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{ApiKeyDirectory, ApiKeyStore, StoreFailure},
};
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::store::open;

/// A file, and a store over it.
pub(crate) struct Keys {
    pub(crate) file: SqliteFile,
    pub(crate) store: SqliteApiKeyStore,
    pub(crate) folder: TempDir,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = open(&folder.path().join("store.db"));
        Self {
            store: SqliteApiKeyStore::new(file.clone()),
            file,
            folder,
        }
    }

    pub(crate) fn directory(&self) -> ApiKeySnapshot {
        self.store.start_directory(&mut Registry::default()).0
    }

    pub(crate) fn uses(&self, interval: Duration) -> (ApiKeyUseRecord, JoinHandle<()>) {
        ApiKeyUseRecord::start(self.store.clone(), 100, interval, &mut Registry::default())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    pub(crate) async fn add(&self, id: &str, token: &str) -> ApiKey {
        self.store
            .change(add(id, token, None), "test")
            .await
            .expect("add")
            .after
            .expect("the key")
            .key
    }
}

pub(crate) async fn find(
    directory: &ApiKeySnapshot,
    token: &str,
) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}
