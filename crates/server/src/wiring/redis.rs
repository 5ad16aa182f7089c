//! The backend `redis`: API keys that several instances share.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_redis::{
    RedisApiKeyDirectory, RedisApiKeyStore, RedisApiKeyUses, diagnose, diagnose_administration,
};
use animal_store_app::{Finding, ports::ApiKeyStore};
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{EXPOSED, Keys, KeysBackend, SharedFile};
use crate::config::{RedisKeysConfig, StorageConfig};

/// A command waits for Redis for longer than a request does.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Redis<'a>(pub(super) &'a RedisKeysConfig);

#[async_trait]
impl KeysBackend for Redis<'_> {
    async fn start(&self, _: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<Keys> {
        let endpoint = &self.0.endpoint;
        let settings = &self.0.directory;
        let (uses, writer) = RedisApiKeyUses::start(endpoint.clone(), settings, registry);
        let directory =
            RedisApiKeyDirectory::connect(endpoint.clone(), settings.clone(), registry).await;
        let directory = Arc::new(directory);
        Ok(Keys {
            readiness: Some(directory.clone()),
            directory,
            uses: Arc::new(uses),
            writer: Some(writer),
        })
    }

    async fn open_store(&self, _: &mut SharedFile) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let store = RedisApiKeyStore::new(
            self.0.administration().clone(),
            &self.0.directory.prefix,
            COMMAND_TIMEOUT,
            self.0.wait_replicas,
        );
        Ok(Some(Arc::new(store)))
    }

    async fn diagnose(&self, _: &StorageConfig) -> Vec<Finding> {
        let settings = &self.0.directory;
        let mut findings = diagnose(&self.0.endpoint, settings).await;
        if let Some(endpoint) = &self.0.admin_endpoint {
            findings.push(diagnose_administration(endpoint, settings).await);
        }
        findings
    }

    fn exposure(&self) -> Option<Finding> {
        let is_exposed = self.0.endpoint.is_exposed() || self.0.administration().is_exposed();
        let advice = "use rediss:// in the URLs of keys.redis";
        is_exposed.then(|| Finding::warning("redis.encryption", EXPOSED, advice))
    }
}
