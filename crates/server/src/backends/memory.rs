//! The backend `memory`: pets and API keys of one process.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_cli::UsageError;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_app::{
    ApiToken, Finding,
    ports::{ApiKeyStore, BulkStorage},
};
use animal_store_settings::{Setting, Values, items};
use anyhow::bail;
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use secrecy::{ExposeSecret, SecretString};

use super::{Access, ApiKeys, ApiKeysBackend, Backend, PetsBackend, Storage, read_retention};

pub(crate) const SETTINGS: &[Setting] = &[Setting::secret(
    TOKENS,
    "Tokens of the API keys: a list, or a text with commas, in an order that stays. Required by the backend \
     `memory`, unless `http.listen` is a loopback address: one is then generated, and printed on a terminal or with \
     `--print-key`.",
)];

/// The setting of the tokens.
pub(crate) const TOKENS: &str = "keys.memory.tokens";

const MEMORY: &str = "memory";

/// Pets in memory.
#[derive(Debug)]
pub struct MemoryPetsConfig {
    /// How long an idempotency key is kept.
    pub(crate) idempotency_retention: Duration,
}

/// API keys that are part of the configuration.
#[derive(Debug)]
pub(crate) struct MemoryApiKeysConfig {
    pub(crate) tokens: Vec<SecretString>,
}

impl MemoryPetsConfig {
    pub(crate) fn read(values: &mut Values) -> Self {
        Self {
            idempotency_retention: read_retention(values),
        }
    }
}

impl MemoryApiKeysConfig {
    /// Reads the tokens: a list, or a text with commas or line ends.
    pub(crate) fn read(values: &mut Values) -> Self {
        let secret = values.secret(TOKENS).unwrap_or_default();
        let tokens: Vec<_> = items(secret.expose_secret())
            .map(SecretString::from)
            .collect();
        for (token, number) in tokens.iter().zip(1..) {
            let parsed = ApiToken::parse(token.clone())
                .map_err(|error| format!("contains an invalid token, number {number}: {error}"));
            let parsed = values.check(TOKENS, parsed);
            if parsed.is_some_and(|token| token.is_short()) {
                let warning = format!(
                    "contains a token, number {number}, that has fewer than 22 characters and can be guessed"
                );
                values.warn(TOKENS, &warning);
            }
        }
        Self { tokens }
    }
}

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
    async fn start(&self, access: &mut Access, _: &mut Registry) -> anyhow::Result<Storage> {
        if access.is_of_command() {
            return Err(in_memory());
        }
        tracing::warn!("pets are kept in memory and are lost when the process ends");
        let repository = Arc::new(MemoryPetRepository::new(self.idempotency_retention));
        Ok(Storage {
            new_repository: Arc::new(move || repository.clone()),
            readiness: None,
            writer: None,
        })
    }

    async fn open_bulk(&self, _: &mut Access) -> anyhow::Result<Arc<dyn BulkStorage>> {
        Err(in_memory())
    }

    async fn migrate(&self, _: bool) -> anyhow::Result<Vec<String>> {
        bail!(UsageError(
            "storage.backend is memory, which has no schema".to_owned()
        ))
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
    async fn start(&self, _: &mut Access, _: &mut Registry) -> anyhow::Result<ApiKeys> {
        let directory = Arc::new(MemoryApiKeyDirectory::new(&self.tokens));
        Ok(ApiKeys {
            uses: directory.clone(),
            directory,
            readiness: None,
            tasks: Vec::new(),
            session: None,
        })
    }

    async fn open_store(&self, _: &mut Access) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        Ok(None)
    }
}

fn in_memory() -> anyhow::Error {
    let text = "storage.backend is memory: only the process that serves has its pets, and another process can neither \
                read nor add any. Set storage.backend to sqlite or postgres";
    UsageError(text.to_owned()).into()
}
