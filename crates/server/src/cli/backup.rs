//! `animal-store backup`: writes everything that the store keeps to a file.

use std::{path::PathBuf, time::SystemTime};

use animal_store_adapters_files::BackupWriter;
use animal_store_app::BackUp;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::{
    InvalidConfig,
    options::Settings,
    transfer::{self, NewFile, Progress, StopRequest, Total, command_line, print_result},
};
use crate::{
    config::Config,
    telemetry,
    wiring::{BulkAccess, BulkStores},
};

/// Permissions of a backup: it contains digests of API keys.
const MODE: u32 = 0o600;

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// File to create, with mode 0600.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// ndjson can be restored into every storage. sqlite is a snapshot of the SQLite file.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    format: BackupFormat,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(super) settings: Settings,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BackupFormat {
    Ndjson,
    Sqlite,
}

pub(super) fn run(args: BackupArgs, config: Config) -> anyhow::Result<()> {
    let _log = telemetry::start_for_command(&config.log);
    transfer::run(|stop| async move {
        let stores = transfer::open_stores(config, BulkAccess::Read).await?;
        match args.format {
            BackupFormat::Ndjson => back_up(args, stores, stop).await,
            BackupFormat::Sqlite => write_snapshot(args, stores).await,
        }
    })
}

async fn back_up(args: BackupArgs, stores: BulkStores, stop: StopRequest) -> anyhow::Result<()> {
    let file = NewFile::create(&args.file, MODE)?;
    let total = if args.quiet { Total::Unknown } else { transfer::estimate(&*stores.pets).await? };
    let mut progress = Progress::new(args.quiet, total, stop);
    let unwritten = || format!("{} cannot be written", args.file.display());
    let mut writer = BackupWriter::create(file.writer()?, SystemTime::now()).with_context(unwritten)?;
    let has_keys = stores.api_keys.is_some();
    let written = BackUp::new(stores.pets, stores.api_keys).execute(&mut writer, &mut progress).await;
    progress.finish();
    let summary = written.context("the backup failed")?;
    if summary.stopped {
        bail!("interrupted: there is no backup; to begin again: {}", command_line(&[]));
    }
    file.finish()?;
    let api_keys =
        if has_keys { summary.api_keys.to_string() } else { "not backed up: keys.backend is memory".to_owned() };
    print_result(
        args.quiet,
        &[
            ("pets", summary.pets.to_string()),
            ("idempotency keys", summary.idempotency_records.to_string()),
            ("tokens of API keys", api_keys),
        ],
    )
}

/// SQLite copies the file as a whole: there is no progress, and a signal takes effect at the end.
async fn write_snapshot(args: BackupArgs, stores: BulkStores) -> anyhow::Result<()> {
    let Some(file) = stores.file else {
        bail!(InvalidConfig("--format sqlite needs storage.backend = \"sqlite\"".to_owned()));
    };
    NewFile::check(&args.file)?;
    file.write_snapshot(&args.file).await?;
    print_result(args.quiet, &[("snapshot", args.file.display().to_string())])
}
