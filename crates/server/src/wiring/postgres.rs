//! The backend `postgres`: a database with pets, and with API keys if these are in it.

use std::sync::Arc;

use animal_store_adapters_postgres::{
    Migrations, PgBulkStorage, PgStorage, PostgresSettings, SchemaMode, api_key_store, diagnose,
};
use animal_store_app::{
    Finding,
    ports::{ApiKeyStore, BulkStorage},
};
use anyhow::Context;
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{EXPOSED, Keys, KeysBackend, NewRepository, PetsBackend, SharedFile, Storage};
use crate::config::{KeysConfig, PostgresConfig, StorageConfig};

const UNUSABLE: &str = "the storage cannot be used";

pub(super) struct Postgres<'a>(pub(super) &'a PostgresConfig);

impl Postgres<'_> {
    async fn start_storage(
        &self,
        settings: PostgresSettings,
        registry: &mut Registry,
    ) -> anyhow::Result<Storage> {
        let endpoint = self.0.endpoint.clone();
        let migrate_endpoint = self.0.migrate_endpoint.clone();
        let started = PgStorage::start(endpoint, migrate_endpoint, settings, registry).await;
        let (storage, writer) = started.context(UNUSABLE)?;
        let readiness = Some(storage.readiness());
        let new_repository: NewRepository = Arc::new(move || Arc::new(storage.repository()));
        Ok(Storage {
            new_repository,
            readiness,
            writer: Some(writer),
        })
    }

    fn migrations(&self) -> Migrations {
        let timeout = self.0.settings.connect_timeout;
        Migrations::new(self.0.migrate_endpoint.clone(), timeout)
    }
}

#[async_trait]
impl PetsBackend for Postgres<'_> {
    async fn start(&self, _: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<Storage> {
        self.start_storage(self.0.settings.clone(), registry).await
    }

    async fn start_for_command(&self, _: &mut SharedFile) -> anyhow::Result<Storage> {
        let settings = PostgresSettings {
            schema: SchemaMode::Check,
            required_at_start: true,
            ..self.0.settings.clone()
        };
        self.start_storage(settings, &mut Registry::default()).await
    }

    async fn open_bulk(&self, file: &mut SharedFile) -> anyhow::Result<Arc<dyn BulkStorage>> {
        self.migrations().check().await.context(UNUSABLE)?;
        let endpoint = if file.is_read_only() {
            &self.0.endpoint
        } else {
            &self.0.migrate_endpoint
        };
        let settings = self.0.settings.clone();
        Ok(Arc::new(PgBulkStorage::new(endpoint.clone(), settings)))
    }

    async fn migrate(&self, dry_run: bool) -> anyhow::Result<Vec<String>> {
        let migrations = self.migrations();
        if dry_run {
            return Ok(migrations.pending().await?);
        }
        let versions = migrations.run().await?;
        if migrations.advance_sequence().await? {
            tracing::info!("the sequence of ids was behind the greatest id, and was set to it");
        }
        Ok(versions)
    }

    async fn diagnose(&self, keys: &KeysConfig) -> Vec<Finding> {
        let PostgresConfig {
            endpoint,
            migrate_endpoint,
            settings,
        } = self.0;
        let has_api_keys = matches!(keys, KeysConfig::Postgres(_));
        diagnose(endpoint, migrate_endpoint, settings, has_api_keys).await
    }

    fn exposure(&self) -> Option<Finding> {
        let is_exposed = self.0.endpoint.is_exposed() || self.0.migrate_endpoint.is_exposed();
        let advice = "set sslmode=verify-full in the URLs of storage.postgres";
        is_exposed.then(|| Finding::warning("postgres.encryption", EXPOSED, advice))
    }
}

#[async_trait]
impl KeysBackend for Postgres<'_> {
    async fn start(&self, _: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<Keys> {
        let store = api_key_store(self.0.endpoint.clone(), self.0.settings.clone());
        let (uses, writer) = store.start_uses(registry);
        let (directory, _) = store.start_directory(registry);
        let directory = Arc::new(directory);
        Ok(Keys {
            readiness: Some(directory.clone()),
            directory,
            uses: Arc::new(uses),
            writer: Some(writer),
        })
    }

    /// Connects past a pooler, and with the rights of migrations.
    async fn open_store(&self, _: &mut SharedFile) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let settings = PostgresSettings {
            transaction_pooling: false,
            ..self.0.settings.clone()
        };
        let endpoint = self.0.migrate_endpoint.clone();
        Ok(Some(Arc::new(api_key_store(endpoint, settings))))
    }

    /// The API keys are examined with the pets.
    async fn diagnose(&self, _: &StorageConfig) -> Vec<Finding> {
        Vec::new()
    }
}
