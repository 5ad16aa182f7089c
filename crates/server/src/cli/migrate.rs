//! `animal-store migrate`: prints the versions of migrations on standard output, one per line, and logs to standard
//! error.

use std::io::{self, Write};

use animal_store_adapters_postgres::Migrations;
use animal_store_adapters_sqlite::SqliteFile;
use anyhow::bail;
use clap::Args;

use crate::{
    config::{LogConfig, PostgresConfig, SqliteConfig, StorageConfig},
    telemetry,
};

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Prints the versions of the pending migrations without running them.
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &MigrateArgs, storage: StorageConfig, log: &LogConfig) -> anyhow::Result<()> {
    let _log = telemetry::start_for_command(log);
    let versions = match storage {
        StorageConfig::Postgres(postgres) => migrate_database(args.dry_run, *postgres)?,
        StorageConfig::Sqlite(SqliteConfig { path, .. }) if args.dry_run => SqliteFile::pending(&path)?,
        StorageConfig::Sqlite(sqlite) => SqliteFile::migrate(&sqlite.path, sqlite.settings.timeout)?,
        StorageConfig::Memory { .. } => bail!("storage.backend is memory, which has no schema"),
    };
    if versions.is_empty() {
        tracing::info!("no migration is pending");
    }
    let mut stdout = io::stdout().lock();
    for version in versions {
        writeln!(stdout, "{version}")?;
    }
    Ok(())
}

fn migrate_database(dry_run: bool, postgres: PostgresConfig) -> anyhow::Result<Vec<String>> {
    let migrations = Migrations::new(postgres.migrate_endpoint, postgres.settings.connect_timeout);
    let runtime = tokio::runtime::Runtime::new()?;
    Ok(runtime.block_on(async { if dry_run { migrations.pending().await } else { migrations.run().await } })?)
}
