//! API keys in a file of their own.

use std::{path::PathBuf, sync::Arc, time::Duration};

use animal_store_adapters_sqlite::{SqliteApiKeyDirectory, SqliteApiKeyStore, SqliteApiKeyUses, SqliteFile};
use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{AddedKey, ApiKeyDirectory, ApiKeyStore, NewToken, StoreFailure},
    test_support::api_key,
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
        Self { store: SqliteApiKeyStore::new(file.clone()), file, folder }
    }

    pub(crate) fn directory(&self) -> SqliteApiKeyDirectory {
        SqliteApiKeyDirectory::start(&self.file, &mut Registry::default()).expect("a directory")
    }

    /// Starts a record of uses with this time between two writes. Returns the end of its writer as well.
    pub(crate) fn uses(&self, interval: Duration) -> (SqliteApiKeyUses, JoinHandle<()>) {
        SqliteApiKeyUses::start_with_interval(&self.file, interval, &mut Registry::default())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    pub(crate) async fn add(&self, id: &str, token: &str) -> ApiKey {
        let key = api_key(id);
        assert_eq!(self.store.add(key.clone(), new_token(token, None)).await.expect("add"), AddedKey::New);
        key
    }
}

pub(crate) fn new_token(token: &str, lifetime: Option<Duration>) -> NewToken {
    NewToken::new(&ApiToken::parse(token.into()).expect("a token"), lifetime)
}

pub(crate) async fn find(directory: &SqliteApiKeyDirectory, token: &str) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}
