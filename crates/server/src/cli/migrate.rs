//! `animal-store migrate`: runs the pending migrations, and prints their versions.

use std::time::Instant;

use animal_store_adapters_cli::{duration_since, print};
use animal_store_telemetry::CommandLog;

use super::command::start;
use crate::config::{Sources, StorageConfig};

pub(super) async fn run(dry_run: bool, sources: &Sources, log: &CommandLog) -> anyhow::Result<()> {
    let started = Instant::now();
    let storage = start(sources, log, StorageConfig::read)?;
    let versions = storage.backend().migrate(dry_run).await?;
    if versions.is_empty() {
        tracing::info!("no migration is pending");
    } else if !dry_run {
        tracing::info!(
            duration = duration_since(started),
            "the migrations were run"
        );
    }
    let lines = versions.iter().map(|version| format!("{version}\n"));
    print(lines.collect::<String>())
}
