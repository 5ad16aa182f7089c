//! The backend `redis`: API keys that several instances share.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_redis::{
    RedisApiKeyDirectory, RedisApiKeyStore, RedisApiKeyUses, diagnose, diagnose_administration,
};
use animal_store_app::{Finding, ports::ApiKeyStore};
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{ApiKeys, ApiKeysBackend, Backend, EXPOSED, SharedFile};
use crate::config::RedisConfig;

/// A command waits for Redis for longer than a request does.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

#[async_trait]
impl Backend for RedisConfig {
    fn place(&self) -> String {
        format!("redis {}", self.endpoint)
    }

    async fn diagnose(&self, _: bool) -> Vec<Finding> {
        let mut findings = diagnose(&self.endpoint, &self.directory).await;
        if let Some(endpoint) = &self.admin_endpoint {
            findings.push(diagnose_administration(endpoint, &self.directory).await);
        }
        findings
    }

    fn exposure(&self) -> Option<Finding> {
        let is_exposed = self.endpoint.is_exposed() || self.administration().is_exposed();
        let advice = "use rediss:// in the URLs of keys.redis";
        is_exposed.then(|| Finding::warning("redis.encryption", EXPOSED, advice))
    }
}

#[async_trait]
impl ApiKeysBackend for RedisConfig {
    async fn start(&self, _: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<ApiKeys> {
        let endpoint = &self.endpoint;
        let settings = &self.directory;
        let (uses, writer) = RedisApiKeyUses::start(endpoint.clone(), settings, registry);
        let directory =
            RedisApiKeyDirectory::connect(endpoint.clone(), settings.clone(), registry).await;
        let directory = Arc::new(directory);
        Ok(ApiKeys {
            readiness: Some(directory.clone()),
            directory,
            uses: Arc::new(uses),
            tasks: vec![writer],
        })
    }

    async fn open_store(&self, _: &mut SharedFile) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let store = RedisApiKeyStore::new(
            self.administration().clone(),
            &self.directory.prefix,
            COMMAND_TIMEOUT,
            self.wait_replicas,
        );
        Ok(Some(Arc::new(store)))
    }

    fn administered_place(&self) -> String {
        format!("redis {}", self.administration())
    }
}
