//! `animal-store migrate`: standard output has the names of migrations, standard error the log.

use std::io::{self, Write};

use animal_store_adapters_postgres::Migrations;
use anyhow::bail;
use clap::Args;

use super::Settings;
use crate::{
    config::{Config, StorageConfig},
    telemetry,
};

#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// Prints the names of the migrations that would be run, and runs none.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) settings: Settings,
}

pub(super) fn run(dry_run: bool, config: Config) -> anyhow::Result<()> {
    let StorageConfig::Postgres(postgres) = config.storage else {
        bail!("storage.backend is memory: it has no schema");
    };
    let _log = telemetry::start_audit(&config.log);
    let migrations = Migrations::new(postgres.migrate_endpoint, postgres.settings.connect_timeout);
    let names = tokio::runtime::Runtime::new()?
        .block_on(async { if dry_run { migrations.pending().await } else { migrations.run().await } })?;
    let mut stdout = io::stdout().lock();
    for name in names {
        writeln!(stdout, "{name}")?;
    }
    Ok(())
}
