//! Examines the stores, and starts the adapters behind the ports.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_app::{CheckReadiness, Finding};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    backends::{Access, ApiKeys, Storage},
    config::Stores,
};

/// Returns a warning about each store whose connections others can read.
pub(crate) fn exposures(stores: &Stores) -> Vec<Finding> {
    let mut exposures = Vec::new();
    exposures.extend(stores.pets.backend().exposure());
    if !stores.are_one() {
        exposures.extend(stores.api_keys.backend().exposure());
    }
    exposures
}

/// Examines the stores.
pub(crate) async fn diagnose(stores: &Stores) -> Vec<Finding> {
    let pets = stores.pets.backend();
    if stores.are_one() {
        return pets.diagnose(true).await;
    }
    // None waits for the timeouts of the other one.
    let api_keys = stores.api_keys.backend();
    let (mut findings, in_api_keys) = tokio::join!(pets.diagnose(false), api_keys.diagnose(true));
    findings.extend(in_api_keys);
    findings
}

/// The adapters, which were started.
pub(crate) struct Adapters<F> {
    /// Creates the use cases of one worker.
    pub(crate) use_cases: F,
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
    /// See [`ApiKeys::tasks`].
    pub(crate) api_key_tasks: Vec<JoinHandle<()>>,
    /// See [`ApiKeys::session`].
    pub(crate) api_key_session: Option<JoinHandle<()>>,
}

/// Starts the adapters. They end after the function that creates use cases and all its use cases are dropped, in any
/// order: each task ends by itself, and the shutdown waits for all.
pub(crate) async fn start(
    stores: &Stores,
    mut access: Access,
    registry: &mut Registry,
) -> anyhow::Result<Adapters<impl Fn() -> UseCases + Clone + Send + 'static>> {
    let pets = stores.pets.backend();
    let api_keys = stores.api_keys.backend();
    let Storage {
        new_repository,
        readiness: storage_probe,
        writer,
    } = pets.start(&mut access, registry).await?;
    let ApiKeys {
        directory,
        uses,
        readiness: api_keys_probe,
        tasks: api_key_tasks,
        session: api_key_session,
    } = api_keys.start(&mut access, registry).await?;
    access.register_metrics(registry);
    tracing::info!(
        pets = pets.place(),
        api_keys = api_keys.place(),
        "storage selected"
    );
    let use_cases = move || {
        let directory = Arc::clone(&directory);
        UseCases::new(new_repository(), directory, Arc::clone(&uses))
    };
    Ok(Adapters {
        use_cases,
        readiness: CheckReadiness::new(storage_probe, api_keys_probe),
        writer,
        api_key_tasks,
        api_key_session,
    })
}
