//! `animal-store migrate`: prints the names of migrations on standard output, one per line, and logs to standard error.

use std::io::{self, Write};

use animal_store_adapters_postgres::Migrations;
use anyhow::bail;
use clap::Args;

use super::options::Settings;
use crate::{
    config::{Config, StorageConfig},
    telemetry,
};

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Prints the names of the pending migrations without running them.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(super) settings: Settings,
}

pub(super) fn run(args: &MigrateArgs, config: Config) -> anyhow::Result<()> {
    let postgres = match config.storage {
        StorageConfig::Postgres(postgres) => postgres,
        StorageConfig::Sqlite(_) => bail!("storage.backend is sqlite: each start migrates the file itself"),
        StorageConfig::Memory { .. } => bail!("storage.backend is memory, which has no schema"),
    };
    let _log = telemetry::start_for_command(&config.log);
    let migrations = Migrations::new(postgres.migrate_endpoint, postgres.settings.connect_timeout);
    let names = tokio::runtime::Runtime::new()?
        .block_on(async { if args.dry_run { migrations.pending().await } else { migrations.run().await } })?;
    if names.is_empty() {
        tracing::info!("no migration is pending");
    }
    let mut stdout = io::stdout().lock();
    for name in names {
        writeln!(stdout, "{name}")?;
    }
    Ok(())
}
