//! `animal-store copy` and `animal-store backup`: copies a store into another one, or into a new SQLite file.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use animal_store_adapters_sqlite::NewBackup;
use animal_store_app::{ApiKeyId, CopyPass, CopyStore, CopySummary};
use anyhow::ensure;
use clap::Args;

use super::{
    InvalidConfig,
    options::Settings,
    transfer::{self, print_result, progress_bar},
};
use crate::{
    config::{Config, Sources, StorageConfig},
    telemetry,
    wiring::{CopySource, CopyTarget},
};

#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// The store to read: its configuration file (.toml), or its SQLite file.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The store to write, which contains no other pets: its configuration file (.toml), or its SQLite file, which is
    /// created if it does not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// SQLite file to create, with mode 0600.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Prints errors only.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(super) settings: Settings,
}

pub(super) fn run(args: &CopyArgs) -> anyhow::Result<()> {
    let [from, to] = [load(&args.from)?, load(&args.to)?];
    let _log = telemetry::start_for_command(&to.log);
    ensure!(
        location(&from.storage) != location(&to.storage),
        InvalidConfig(format!("{} and {} name the same store", args.from.display(), args.to.display()))
    );
    transfer::run(async {
        let source = CopySource::open(from.storage, &from.keys).await?;
        print_summary(args.quiet, &copy(args.quiet, source, to).await?)
    })
}

pub(super) fn back_up(args: &BackupArgs, config: Config) -> anyhow::Result<()> {
    let _log = telemetry::start_for_command(&config.log);
    transfer::run(async {
        let source = CopySource::open(config.storage, &config.keys).await?;
        let backup = NewBackup::create(&args.file)?;
        if let Some(file) = source.file {
            backup.vacuum_from(file).await?;
            backup.finish()?;
            return print_result(args.quiet, &[("backup", args.file.display().to_string())]);
        }
        let summary = copy(args.quiet, source, load(&backup.path())?).await?;
        backup.finish()?;
        print_summary(args.quiet, &summary)
    })
}

/// Reads a configuration file, or makes the configuration of an SQLite file. The environment is ignored: it would
/// change both sides.
fn load(path: &Path) -> anyhow::Result<Config> {
    let sources = if path.extension().is_some_and(|extension| extension == "toml") {
        Sources { file: Some(path.to_owned()), ..Sources::default() }
    } else {
        let flags = vec![("storage.sqlite.path".to_owned(), path.display().to_string())];
        Sources { flags, ..Sources::default() }
    };
    Ok(Config::load(&sources).map_err(|error| InvalidConfig(format!("{}: {error}", path.display())))?)
}

/// The backend, and where it keeps the pets. Equal for equal stores.
fn location(storage: &StorageConfig) -> String {
    match storage {
        StorageConfig::Sqlite(sqlite) => {
            let file = sqlite.path.metadata().map(|file| format!("{}:{}", file.dev(), file.ino()));
            file.unwrap_or_else(|_| sqlite.path.display().to_string())
        }
        storage => storage.to_string(),
    }
}

async fn copy(quiet: bool, from: CopySource, to: Config) -> anyhow::Result<CopySummary> {
    let to = CopyTarget::open(to.storage, &to.keys).await?;
    let bar = progress_bar(quiet, None, "{msg}: {human_pos} pets, {per_sec}");
    let mut progress = |pass, pets| {
        let name = match pass {
            CopyPass::Check => "check",
            CopyPass::Transfer => "transfer",
            CopyPass::Verification => "verification",
        };
        if bar.message() != name {
            bar.reset();
            bar.set_message(name);
        }
        bar.set_position(pets);
    };
    let copied = CopyStore::new(from.pets, to.pets, from.api_keys.zip(to.api_keys)).execute(&mut progress).await;
    bar.finish_and_clear();
    Ok(copied?)
}

fn print_summary(quiet: bool, summary: &CopySummary) -> anyhow::Result<()> {
    let api_keys = match &summary.api_keys {
        Some(keys) => format!("{} added", keys.added),
        None => "not copied: they are part of a configuration".to_owned(),
    };
    let mut lines = vec![
        ("pets", format!("{}, {} of them added", summary.pets, summary.added)),
        ("pets verified, sha256", summary.digest.clone()),
        ("idempotency keys", summary.idempotency_records.to_string()),
        ("tokens of API keys", api_keys),
    ];
    if let Some(others) = summary.api_keys.as_ref().map(|keys| &keys.others).filter(|others| !others.is_empty()) {
        let ids: Vec<_> = others.iter().map(ApiKeyId::as_str).collect();
        let text = format!("{}; revoke those that were revoked in the source", ids.join(", "));
        lines.push(("API keys of the target alone", text));
    }
    print_result(quiet, &lines)
}
