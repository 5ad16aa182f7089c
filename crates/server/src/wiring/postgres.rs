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

use super::{
    ApiKeys, ApiKeysBackend, Backend, EXPOSED, NewRepository, PetsBackend, SharedFile, Storage,
    start_sql_api_keys,
};
use crate::config::PostgresConfig;

const UNUSABLE: &str = "the storage cannot be used";

impl PostgresConfig {
    async fn start_storage(
        &self,
        settings: PostgresSettings,
        registry: &mut Registry,
    ) -> anyhow::Result<Storage> {
        let endpoint = self.endpoint.clone();
        let migrate_endpoint = self.migrate_endpoint.clone();
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
        let timeout = self.settings.connect_timeout;
        Migrations::new(self.migrate_endpoint.clone(), timeout)
    }
}

#[async_trait]
impl PetsBackend for PostgresConfig {
    async fn start(&self, _: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<Storage> {
        self.start_storage(self.settings.clone(), registry).await
    }

    async fn start_for_command(&self, _: &mut SharedFile) -> anyhow::Result<Storage> {
        let settings = PostgresSettings {
            schema: SchemaMode::Check,
            required_at_start: true,
            ..self.settings.clone()
        };
        self.start_storage(settings, &mut Registry::default()).await
    }

    async fn open_bulk(&self, file: &mut SharedFile) -> anyhow::Result<Arc<dyn BulkStorage>> {
        self.migrations().check().await.context(UNUSABLE)?;
        let endpoint = if file.is_read_only() {
            &self.endpoint
        } else {
            &self.migrate_endpoint
        };
        let settings = self.settings.clone();
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

    fn connections(&self, workers: usize) -> usize {
        workers * self.settings.connections_per_worker
    }
}

#[async_trait]
impl Backend for PostgresConfig {
    fn place(&self) -> String {
        format!("postgres {}", self.endpoint)
    }

    async fn diagnose(&self, has_api_keys: bool) -> Vec<Finding> {
        let migrate_endpoint = &self.migrate_endpoint;
        diagnose(
            &self.endpoint,
            migrate_endpoint,
            &self.settings,
            has_api_keys,
        )
        .await
    }

    fn exposure(&self) -> Option<Finding> {
        let is_exposed = self.endpoint.is_exposed() || self.migrate_endpoint.is_exposed();
        let advice = "set sslmode=verify-full in the URLs of storage.postgres";
        is_exposed.then(|| Finding::warning("postgres.encryption", EXPOSED, advice))
    }
}

#[async_trait]
impl ApiKeysBackend for PostgresConfig {
    async fn start(&self, _: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<ApiKeys> {
        let store = api_key_store(self.endpoint.clone(), self.settings.clone());
        // A check of a server that does not respond delays no shutdown.
        let (api_keys, _) = start_sql_api_keys(&store, registry);
        Ok(api_keys)
    }

    /// Connects past a pooler, and with the rights of migrations.
    async fn open_store(&self, _: &mut SharedFile) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let settings = PostgresSettings {
            transaction_pooling: false,
            ..self.settings.clone()
        };
        let endpoint = self.migrate_endpoint.clone();
        Ok(Some(Arc::new(api_key_store(endpoint, settings))))
    }

    fn administered_place(&self) -> String {
        format!("postgres {}", self.migrate_endpoint)
    }
}
