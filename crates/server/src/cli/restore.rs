//! `animal-store restore`: adds the content of a backup to a store without other pets.

use std::{io, path::PathBuf, time::SystemTime};

use animal_store_adapters_files::FileFormat;
use animal_store_app::{CopyApiKeys, CopyStorage, ExportPets};
use anyhow::{Context, bail};
use clap::Args;

use super::{
    copy::copied_lines,
    options::Settings,
    transfer::{self, Progress, StopRequest, Total, command_line, print_result},
};
use crate::{
    config::Config,
    telemetry,
    wiring::{BulkAccess, BulkStores},
};

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// Backup to read, in either format.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Reads the backup and the storage again at the end, and compares their pets.
    #[arg(long)]
    verify: bool,
    /// Checks the backup and writes nothing.
    #[arg(long, conflicts_with = "verify")]
    dry_run: bool,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(super) settings: Settings,
}

pub(super) fn run(args: RestoreArgs, config: Config) -> anyhow::Result<()> {
    transfer::refuse_memory(&config)?;
    let _log = telemetry::start_for_command(&config.log);
    transfer::run(|stop| async move {
        let unreadable = || format!("{} cannot be restored", args.file.display());
        let backup = BulkStores::open_backup(args.file.clone()).await.with_context(unreadable)?;
        if args.dry_run {
            return check(&args, backup, stop).await;
        }
        // After the backup: a wrong or damaged file creates no storage.
        let stores = transfer::open_stores(config, BulkAccess::Write).await?;
        restore(&args, backup, stores, stop).await
    })
}

async fn restore(args: &RestoreArgs, from: BulkStores, to: BulkStores, stop: StopRequest) -> anyhow::Result<()> {
    let mut progress = Progress::new(args.quiet, Total::Unknown, stop);
    let copy = CopyStorage::new(from.pets, to.pets);
    let copy = if args.verify { copy } else { copy.without_verification() };
    let copied = copy.execute(&mut progress).await;
    progress.finish();
    let copied = copied?;
    if copied.stopped {
        bail!("interrupted; to continue: {}", command_line(&[]));
    }
    let api_keys = match (from.api_keys, to.api_keys) {
        (Some(from), Some(to)) => format!("{} added", CopyApiKeys::new(from, to).execute().await?),
        _ => "not restored: keys.backend is memory".to_owned(),
    };
    print_result(args.quiet, &copied_lines(&copied, api_keys))
}

/// Reads every pet of the backup.
async fn check(args: &RestoreArgs, backup: BulkStores, stop: StopRequest) -> anyhow::Result<()> {
    let mut progress = Progress::new(args.quiet, Total::Unknown, stop);
    let mut sink = FileFormat::Ndjson.create(Box::new(io::sink()), SystemTime::now())?;
    let read = ExportPets::new(backup.pets).execute(&mut *sink, &mut progress).await;
    progress.finish();
    let summary = read?;
    if summary.stopped {
        bail!("interrupted");
    }
    print_result(args.quiet, &[("pets", summary.pets.to_string()), ("sha256", summary.digest.to_string())])
}
