//! The backend `sqlite`: one file with pets, API keys, or both.

use std::{os::unix::fs::MetadataExt, sync::Arc};

use animal_store_adapters_cli::StoreUse;
use animal_store_adapters_sqlite::{
    FileUse, SqliteApiKeyStore, SqliteBulkStorage, SqliteFile, SqliteStorage, diagnose,
};
use animal_store_app::{
    Finding,
    ports::{ApiKeyStore, BulkStorage},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use super::{
    ApiKeys, ApiKeysBackend, Backend, NewRepository, PetsBackend, Storage, start_sql_api_keys,
};
use crate::config::SqliteConfig;

/// The SQLite file. The first adapter that needs it opens it, and the others share it.
pub(crate) struct SharedFile {
    usage: FileUse,
    file: Option<SqliteFile>,
}

impl SharedFile {
    /// The file of the service, which may create it.
    pub(crate) const fn of_service() -> Self {
        Self {
            usage: FileUse::Create,
            file: None,
        }
    }

    /// The file of a command.
    pub(crate) const fn of_command(usage: StoreUse) -> Self {
        let usage = match usage {
            StoreUse::Read => FileUse::Read,
            StoreUse::Write => FileUse::Write,
            StoreUse::Create => FileUse::WriteOrCreate,
        };
        Self { usage, file: None }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.usage == FileUse::Read
    }

    pub(crate) async fn open(&mut self, config: &SqliteConfig) -> anyhow::Result<SqliteFile> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let path = config.path.clone();
        let timeout = config.settings.timeout;
        let usage = self.usage;
        let opened = spawn_blocking(move || SqliteFile::open(&path, usage, timeout));
        Ok(self.file.insert(opened.await??).clone())
    }

    /// Registers the metrics of the file, if it was opened.
    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        if let Some(file) = &self.file {
            file.register_metrics(registry);
        }
    }
}

#[async_trait]
impl PetsBackend for SqliteConfig {
    async fn start(
        &self,
        file: &mut SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<Storage> {
        let file = file.open(self).await?;
        let (storage, writer) = SqliteStorage::start(&file, self.settings.clone(), registry)?;
        let readiness = Some(storage.readiness());
        let new_repository: NewRepository = Arc::new(move || Arc::new(storage.repository()));
        Ok(Storage {
            new_repository,
            readiness,
            writer: Some(writer),
        })
    }

    async fn start_for_command(&self, file: &mut SharedFile) -> anyhow::Result<Storage> {
        PetsBackend::start(self, file, &mut Registry::default()).await
    }

    async fn open_bulk(&self, file: &mut SharedFile) -> anyhow::Result<Arc<dyn BulkStorage>> {
        Ok(Arc::new(SqliteBulkStorage::new(&file.open(self).await?)))
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
    async fn start(
        &self,
        file: &mut SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<ApiKeys> {
        let file = file.open(self).await?;
        file.warn_of_backup().await?;
        let store = SqliteApiKeyStore::new(file);
        let (mut api_keys, directory_end) = start_sql_api_keys(&store, registry);
        // The directory, too, has the file open.
        api_keys.tasks.push(directory_end);
        Ok(api_keys)
    }

    async fn open_store(
        &self,
        file: &mut SharedFile,
    ) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let file = file.open(self).await?;
        Ok(Some(Arc::new(SqliteApiKeyStore::new(file))))
    }
}
