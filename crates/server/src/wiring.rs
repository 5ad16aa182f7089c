//! Starts the adapters behind the ports.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_app::{CheckReadiness, Finding};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    backends::{Access, ApiKeys, Storage},
    config::{ApiKeysConfig, StorageConfig},
};

/// Returns a warning about each backend whose connections others can read.
pub(crate) fn exposures(storage: &StorageConfig, api_keys: &ApiKeysConfig) -> Vec<Finding> {
    let mut exposures = Vec::new();
    exposures.extend(storage.backend().exposure());
    if !api_keys.is_in(storage) {
        exposures.extend(api_keys.backend().exposure());
    }
    exposures
}

/// Examines the backends.
pub(crate) async fn diagnose(storage: &StorageConfig, api_keys: &ApiKeysConfig) -> Vec<Finding> {
    if api_keys.is_in(storage) {
        return storage.backend().diagnose(true).await;
    }
    // None waits for the timeouts of the other one.
    let (mut findings, in_api_keys) = tokio::join!(
        storage.backend().diagnose(false),
        api_keys.backend().diagnose(true)
    );
    findings.extend(in_api_keys);
    findings
}

/// What the selected adapters have besides their use cases. Nothing of it keeps them open.
pub(crate) struct Adapters {
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
    /// See [`ApiKeys::tasks`].
    pub(crate) api_key_tasks: Vec<JoinHandle<()>>,
}

/// Starts the adapters. Returns the function that creates the use cases of one worker. The adapters end after this
/// function and all its use cases are dropped, in any order: each task ends by itself, and the shutdown waits for all.
pub(crate) async fn start(
    storage: StorageConfig,
    api_keys: ApiKeysConfig,
    mut access: Access,
    registry: &mut Registry,
) -> anyhow::Result<(impl Fn() -> UseCases + Clone + Send + 'static, Adapters)> {
    let Storage {
        new_repository,
        readiness: storage_probe,
        writer,
    } = storage.backend().start(&mut access, registry).await?;
    let ApiKeys {
        directory,
        uses,
        readiness: api_keys_probe,
        tasks: api_key_tasks,
    } = api_keys.backend().start(&mut access, registry).await?;
    access.register_metrics(registry);
    let pets = storage.backend().place();
    let api_keys = api_keys.backend().place();
    tracing::info!(pets, api_keys, "storage selected");
    let adapters = Adapters {
        readiness: CheckReadiness::new(storage_probe, api_keys_probe),
        writer,
        api_key_tasks,
    };
    let use_cases = move || {
        let directory = Arc::clone(&directory);
        UseCases::new(new_repository(), directory, Arc::clone(&uses))
    };
    Ok((use_cases, adapters))
}
