//! The backend `sqlite`: one file with pets, API keys, or both.

use std::{
    os::unix::fs::MetadataExt,
    path::{PathBuf, absolute},
    sync::Arc,
};

use animal_store_adapters_sqlite::{
    SqliteApiKeyStore, SqliteBulkStorage, SqliteFile, SqliteSettings, SqliteStorage, diagnose,
};
use animal_store_app::{
    Finding,
    ports::{ApiKeyStore, BulkStorage},
};
use animal_store_settings::{Setting, Values, parsers::path};
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{
    Access, ApiKeys, ApiKeysBackend, Backend, NewRepository, PetsBackend, Storage, read_retention,
    start_sql_api_keys,
};

pub(crate) const SETTINGS: &[Setting] = &[Setting::new(
    PATH,
    "animal-store.db",
    "File of the backends `sqlite`, relative to the working directory. The first start creates it.",
)];

/// The setting of the file.
pub(crate) const PATH: &str = "storage.sqlite.path";

/// The file of pets and API keys, and how it is used.
#[derive(Debug)]
pub struct SqliteConfig {
    /// Absolute path.
    pub(crate) path: PathBuf,
    /// What has no key has its default.
    pub settings: SqliteSettings,
}

impl SqliteConfig {
    pub(crate) fn read(values: &mut Values) -> Self {
        let path = values.get(PATH, path);
        Self {
            // Without a working directory, opening the file is the error.
            path: absolute(&path).unwrap_or(path),
            settings: SqliteSettings {
                idempotency_retention: read_retention(values),
                ..SqliteSettings::default()
            },
        }
    }

    pub(crate) async fn open(&self, access: &mut Access) -> anyhow::Result<SqliteFile> {
        access.open_file(&self.path, self.settings.timeout).await
    }
}

#[async_trait]
impl PetsBackend for SqliteConfig {
    async fn start(&self, access: &mut Access, registry: &mut Registry) -> anyhow::Result<Storage> {
        let file = self.open(access).await?;
        let (storage, writer) = SqliteStorage::start(&file, self.settings.clone(), registry)?;
        let readiness = Some(storage.readiness());
        let new_repository: NewRepository = Arc::new(move || Arc::new(storage.repository()));
        Ok(Storage {
            new_repository,
            readiness,
            writer: Some(writer),
        })
    }

    async fn open_bulk(&self, access: &mut Access) -> anyhow::Result<Arc<dyn BulkStorage>> {
        Ok(Arc::new(SqliteBulkStorage::new(&self.open(access).await?)))
    }

    async fn migrate(&self, dry_run: bool) -> anyhow::Result<Vec<String>> {
        let path = &self.path;
        let versions = if dry_run {
            SqliteFile::pending(path)
        } else {
            SqliteFile::migrate(path, self.settings.timeout)
        };
        Ok(versions?)
    }

    /// A file can have several paths.
    fn identity(&self) -> String {
        match self.path.metadata() {
            Ok(file) => format!("{}:{}", file.dev(), file.ino()),
            Err(_) => self.path.display().to_string(),
        }
    }
}

#[async_trait]
impl Backend for SqliteConfig {
    fn place(&self) -> String {
        format!("sqlite {}", self.path.display())
    }

    async fn diagnose(&self, _: bool) -> Vec<Finding> {
        diagnose(&self.path, self.settings.timeout).await
    }
}

#[async_trait]
impl ApiKeysBackend for SqliteConfig {
    async fn start(&self, access: &mut Access, registry: &mut Registry) -> anyhow::Result<ApiKeys> {
        let file = self.open(access).await?;
        file.warn_of_backup().await?;
        let store = SqliteApiKeyStore::new(file);
        let (mut api_keys, directory_end) = start_sql_api_keys(&store, registry);
        // The directory, too, has the file open.
        api_keys.tasks.push(directory_end);
        Ok(api_keys)
    }

    async fn open_store(
        &self,
        access: &mut Access,
    ) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let file = self.open(access).await?;
        Ok(Some(Arc::new(SqliteApiKeyStore::new(file))))
    }
}
