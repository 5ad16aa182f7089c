//! `animal-store copy`: copies the store of one configuration file into the store of another one.

use std::path::{Path, PathBuf};

use animal_store_app::{CopyApiKeys, CopyStorage, CopySummary};
use anyhow::{bail, ensure};
use clap::Args;

use super::{
    InvalidConfig,
    transfer::{self, Progress, StopRequest, Total, command_line, print_result},
};
use crate::{
    config::{Config, Sources},
    telemetry,
    wiring::BulkAccess,
};

#[derive(Debug, Clone, Args)]
pub(super) struct CopyArgs {
    /// Configuration file of the store to read.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Configuration file of the store to write, which contains no other pets.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
}

pub(super) fn run(args: &CopyArgs) -> anyhow::Result<()> {
    let [from, to] = [load(&args.from)?, load(&args.to)?];
    let _log = telemetry::start_for_command(&to.log);
    transfer::run(|stop| copy(args.clone(), from, to, stop))
}

/// Describes the result of a copy or of a restore.
pub(super) fn copied_lines(copied: &CopySummary, api_keys: String) -> Vec<(&'static str, String)> {
    let verified = copied.digest.map(|digest| ("pets verified, sha256", digest.to_string()));
    let lines = [
        ("pets", format!("{}, {} of them added", copied.pets, copied.added)),
        ("idempotency keys", copied.idempotency_records.to_string()),
        ("tokens of API keys", api_keys),
    ];
    lines.into_iter().chain(verified).collect()
}

/// Reads a configuration file. The environment is ignored: it would change both sides.
fn load(file: &Path) -> anyhow::Result<Config> {
    let sources = Sources { file: Some(file.to_owned()), ..Sources::default() };
    Ok(Config::load(&sources).map_err(|error| InvalidConfig(format!("{}: {error}", file.display())))?)
}

async fn copy(args: CopyArgs, from: Config, to: Config, stop: StopRequest) -> anyhow::Result<()> {
    let invalid = |file: &Path, error: anyhow::Error| {
        if error.is::<InvalidConfig>() { InvalidConfig(format!("{}: {error}", file.display())).into() } else { error }
    };
    let from = transfer::open_stores(from, BulkAccess::Read).await.map_err(|error| invalid(&args.from, error))?;
    let to = transfer::open_stores(to, BulkAccess::Write).await.map_err(|error| invalid(&args.to, error))?;
    ensure!(from.location != to.location, InvalidConfig(format!("both files name the same store: {}", from.location)));

    let total = if args.quiet { Total::Unknown } else { transfer::estimate(&*from.pets).await? };
    let mut progress = Progress::new(args.quiet, total, stop);
    let copied = CopyStorage::new(from.pets, to.pets).execute(&mut progress).await;
    progress.finish();
    let copied = copied?;
    if copied.stopped {
        bail!("interrupted; to continue: {}", command_line(&[]));
    }
    let api_keys = match (from.api_keys, to.api_keys) {
        (Some(from), Some(to)) => format!("{} added", CopyApiKeys::new(from, to).execute().await?),
        (None, _) => format!("not copied: keys.backend of {} is memory", args.from.display()),
        (_, None) => format!("not copied: keys.backend of {} is memory", args.to.display()),
    };
    print_result(args.quiet, &copied_lines(&copied, api_keys))
}
