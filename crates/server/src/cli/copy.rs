//! `animal-store copy` and `animal-store backup`: copies a store into another one, or into a new SQLite file.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use animal_store_adapters_sqlite::NewBackup;
use animal_store_app::{ApiKeyId, CopyStore, CopySummary};
use anyhow::ensure;
use clap::Args;

use super::{
    InvalidConfig, load, read_stores,
    transfer::{self, print_result, progress_bar},
};
use crate::{
    config::{KeysConfig, LogConfig, Sources, StorageConfig, Values},
    telemetry,
    wiring::{CopySource, CopyTarget},
};

/// Where pets and API keys are.
type Stores = (StorageConfig, KeysConfig);

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
}

pub(super) fn run(args: &CopyArgs) -> anyhow::Result<()> {
    let ((_, from), (log, to)) = (load_path(&args.from)?, load_path(&args.to)?);
    let _log = telemetry::start_for_command(&log);
    ensure!(
        location(&from.0) != location(&to.0),
        InvalidConfig(format!("{} and {} name the same store", args.from.display(), args.to.display()))
    );
    transfer::run(async {
        let source = CopySource::open(from.0, &from.1).await?;
        print_summary(args.quiet, &copy(args.quiet, source, to).await?)
    })
}

pub(super) fn back_up(args: &BackupArgs, sources: &Sources) -> anyhow::Result<()> {
    let (log, (storage, keys)) = load(sources, read_stores_and_log)?;
    let _log = telemetry::start_for_command(&log);
    transfer::run(async {
        let source = CopySource::open(storage, &keys).await?;
        let backup = NewBackup::create(&args.file)?;
        if let Some(file) = source.file {
            backup.vacuum_from(file).await?;
            backup.finish()?;
            return print_result(args.quiet, &[("backup", args.file.display().to_string())]);
        }
        let summary = copy(args.quiet, source, load_path(&backup.path())?.1).await?;
        backup.finish()?;
        print_summary(args.quiet, &summary)
    })
}

/// Reads a configuration file, or makes the configuration of an SQLite file. The environment is ignored: it would
/// change both sides.
fn load_path(path: &Path) -> anyhow::Result<(LogConfig, Stores)> {
    let sources = if path.extension().is_some_and(|extension| extension == "toml") {
        Sources { file: Some(path.to_owned()), ..Sources::default() }
    } else {
        let flags = vec![("storage.sqlite.path".to_owned(), path.display().to_string())];
        Sources { flags, ..Sources::default() }
    };
    let loaded = load(&sources, read_stores_and_log);
    Ok(loaded.map_err(|InvalidConfig(error)| InvalidConfig(format!("{}: {error}", path.display())))?)
}

fn read_stores_and_log(values: &mut Values) -> Option<(LogConfig, Stores)> {
    Some((LogConfig::read(values), read_stores(values)?))
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

async fn copy(quiet: bool, from: CopySource, (storage, keys): Stores) -> anyhow::Result<CopySummary> {
    let to = CopyTarget::open(storage, &keys).await?;
    let bar = progress_bar(quiet, None, "{msg}: {human_pos} pets, {per_sec}");
    let mut progress = |pass, pets| {
        if bar.message() != pass {
            bar.reset();
            bar.set_message(pass);
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
