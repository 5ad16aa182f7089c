//! `animal-store doctor`: reads the configured file, connects to the configured PostgreSQL and Redis, and prints a
//! finding per line on standard output.

mod process;
mod report;

use std::io::{self, Write};

use animal_store_app::{Finding, Verdict};
use anyhow::{Context, ensure};
use clap::Args;
use tokio::runtime::Builder;

use super::options::Settings;
use crate::config::{Config, KeysConfig, SqliteConfig, StorageConfig};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Prints a JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) settings: Settings,
}

pub(super) fn run(args: &DoctorArgs, config: &Config) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // No dependency waits for the timeouts of the other one.
    let [storage, keys] =
        runtime.block_on(async { tokio::join!(examine_storage(config), examine_keys(config)).into() });
    // A thread that is blocked, such as in a lookup of a name, is left behind.
    runtime.shutdown_background();
    let findings = [process::examine(config), storage, keys].concat();
    let text = if args.json { report::json(&findings)? } else { report::text(&findings) };
    io::stdout().write_all(text.as_bytes()).context("cannot write the findings")?;
    let errors = findings.iter().filter(|finding| finding.verdict == Verdict::Error).count();
    ensure!(errors == 0, "errors found: {errors}");
    Ok(())
}

async fn examine_storage(config: &Config) -> Vec<Finding> {
    match &config.storage {
        StorageConfig::Sqlite(sqlite) => examine_file(sqlite).await,
        StorageConfig::Memory { .. } => vec![Finding::warning(
            "storage.backend",
            "memory: pets are lost when the process ends, and instances do not share them",
            "set storage.backend to sqlite or postgres, unless this is a test",
        )],
        StorageConfig::Postgres(postgres) => {
            let (endpoint, direct) = (&postgres.endpoint, &postgres.migrate_endpoint);
            let workers = config.http.limits.workers;
            animal_store_adapters_postgres::diagnose(endpoint, direct, &postgres.settings, workers).await
        }
    }
}

async fn examine_keys(config: &Config) -> Vec<Finding> {
    match &config.keys {
        // Examined as the storage.
        KeysConfig::Sqlite(_) if matches!(config.storage, StorageConfig::Sqlite(_)) => Vec::new(),
        KeysConfig::Sqlite(sqlite) => examine_file(sqlite).await,
        KeysConfig::Memory { tokens } if tokens.is_empty() => vec![Finding::warning(
            "keys.backend",
            "memory without tokens: each start generates a key and prints it",
            "set keys.memory.tokens or keys.backend, unless this is a test",
        )],
        KeysConfig::Memory { tokens } => {
            let found = format!("memory: {} tokens, which only a restart can revoke", tokens.len());
            vec![Finding::ok("keys.backend", found)]
        }
        KeysConfig::Redis(redis) => animal_store_adapters_redis::diagnose(&redis.endpoint, &redis.directory).await,
    }
}

async fn examine_file(sqlite: &SqliteConfig) -> Vec<Finding> {
    animal_store_adapters_sqlite::diagnose(&sqlite.path, sqlite.settings.timeout).await
}
