//! `animal-store backup`: copies a store into a new SQLite file.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use animal_store_app::CopySummary;
use clap::Args;

use crate::{copy::print_summary, output::print_result};

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// SQLite file to create, with mode 0600.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// A backup that is complete.
pub enum Backup {
    /// SQLite has written its file.
    Snapshot {
        /// Number of pets.
        pets: i64,
    },
    /// A store was copied into the file.
    Copy(CopySummary),
}

/// Makes a backup and prints a summary. `back_up` writes the file.
///
/// # Errors
/// If the backup fails.
pub async fn run(
    args: BackupArgs,
    back_up: impl AsyncFnOnce(&Path) -> anyhow::Result<Backup>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    match back_up(&args.file).await? {
        Backup::Snapshot { pets } => print_result(
            &[
                ("backup", args.file.display().to_string()),
                ("pets", pets.to_string()),
            ],
            started,
        ),
        Backup::Copy(summary) => print_summary(&summary, started),
    }
}
