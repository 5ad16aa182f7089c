//! The backend `memory`: pets and API keys of one process.

use std::sync::Arc;

use animal_store_adapters_cli::UsageError;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_app::{
    Finding,
    ports::{ApiKeyStore, BulkStorage},
};
use anyhow::bail;
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{ApiKeys, ApiKeysBackend, Backend, PetsBackend, SharedFile, Storage};
use crate::config::{MemoryApiKeysConfig, MemoryPetsConfig};

const MEMORY: &str = "memory";

#[async_trait]
impl Backend for MemoryPetsConfig {
    fn place(&self) -> String {
        MEMORY.to_owned()
    }

    async fn diagnose(&self, _: bool) -> Vec<Finding> {
        vec![Finding::warning(
            "storage.backend",
            "memory: pets are lost when the process ends, and instances do not share them",
            "set storage.backend to sqlite or postgres, unless this is a test",
        )]
    }
}

#[async_trait]
impl PetsBackend for MemoryPetsConfig {
    async fn start(&self, _: &mut SharedFile, _: &mut Registry) -> anyhow::Result<Storage> {
        tracing::warn!("pets are kept in memory and are lost when the process ends");
        let repository = Arc::new(MemoryPetRepository::new(self.idempotency_retention));
        Ok(Storage {
            new_repository: Arc::new(move || repository.clone()),
            readiness: None,
            writer: None,
        })
    }

    async fn start_for_command(&self, _: &mut SharedFile) -> anyhow::Result<Storage> {
        Err(in_memory())
    }

    async fn open_bulk(&self, _: &mut SharedFile) -> anyhow::Result<Arc<dyn BulkStorage>> {
        Err(in_memory())
    }

    async fn migrate(&self, _: bool) -> anyhow::Result<Vec<String>> {
        bail!("storage.backend is memory, which has no schema")
    }
}

#[async_trait]
impl Backend for MemoryApiKeysConfig {
    fn place(&self) -> String {
        MEMORY.to_owned()
    }

    async fn diagnose(&self, _: bool) -> Vec<Finding> {
        let subject = "keys.backend";
        let finding = if self.tokens.is_empty() {
            Finding::warning(
                subject,
                "memory without tokens: a start on a terminal generates a key, and any other has none",
                "set keys.memory.tokens or keys.backend, unless this is a test",
            )
        } else {
            let tokens = self.tokens.len();
            let found = format!("memory: {tokens} tokens, which only a restart can revoke");
            Finding::ok(subject, found)
        };
        vec![finding]
    }
}

#[async_trait]
impl ApiKeysBackend for MemoryApiKeysConfig {
    async fn start(&self, _: &mut SharedFile, _: &mut Registry) -> anyhow::Result<ApiKeys> {
        let directory = Arc::new(MemoryApiKeyDirectory::new(&self.tokens));
        Ok(ApiKeys {
            uses: directory.clone(),
            directory,
            readiness: None,
            tasks: Vec::new(),
        })
    }

    async fn open_store(&self, _: &mut SharedFile) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        Ok(None)
    }
}

fn in_memory() -> anyhow::Error {
    let text = "storage.backend is memory: only the process that serves has its pets, and another process can neither \
                read nor add any. Set storage.backend to sqlite or postgres";
    UsageError(text.to_owned()).into()
}
