//! `animal-store copy` and `animal-store backup`: copies a store into another one, or into a new SQLite file.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use animal_store_adapters_sqlite::{FileUse, NewBackup, SqliteApiKeyStore};
use animal_store_app::{ApiKeyId, CopyStore, CopySummary, ports::ApiKeyStore};
use anyhow::{Context, ensure};
use clap::Args;

use super::{
    command::{InvalidConfig, log_warnings, print_result, start},
    keys::confirm_changes,
};
use crate::{
    config::{self, KeysConfig, Sources, StorageConfig, Values},
    wiring::{SharedFile, api_key_store, bulk_storage},
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
    /// Copies no API keys.
    #[arg(long)]
    without_keys: bool,
}

pub(super) async fn run(args: &CopyArgs) -> anyhow::Result<()> {
    let started = Instant::now();
    // The log is that of the target.
    let target = start(&sources_of(&args.to), read_stores);
    let (mut to, _log) = target.with_context(|| args.to.display().to_string())?;
    let mut from = load_path(&args.from)?;
    ensure!(
        location(&from.0) != location(&to.0),
        InvalidConfig(format!(
            "{} and {} name the same store",
            args.from.display(),
            args.to.display()
        ))
    );
    if args.without_keys {
        for (_, keys) in [&mut from, &mut to] {
            *keys = KeysConfig::Memory { tokens: Vec::new() };
        }
    }
    let (summary, keys) = copy(from, to).await?;
    print_summary(&summary, started)?;
    match keys {
        Some(keys) => confirm_changes(&*keys).await,
        None => Ok(()),
    }
}

pub(super) async fn back_up(file: &Path, sources: &Sources) -> anyhow::Result<()> {
    let started = Instant::now();
    let (stores, _log) = start(sources, read_stores)?;
    if let (StorageConfig::Sqlite(sqlite), KeysConfig::Sqlite(_)) = &stores {
        let source = SharedFile::new(FileUse::Read).open(sqlite).await?;
        let backup = NewBackup::create(file)?;
        let pets = backup.vacuum_from(source).await?;
        backup.finish()?;
        return print_result(
            &[
                ("backup", file.display().to_string()),
                ("pets", pets.to_string()),
            ],
            started,
        );
    }
    let backup = NewBackup::create(file)?;
    let (summary, _) = copy(stores, load_path(&backup.path())?).await?;
    backup.finish()?;
    print_summary(&summary, started)
}

/// Reads the stores in a configuration file, or those of an SQLite file, and logs the warnings.
fn load_path(path: &Path) -> anyhow::Result<Stores> {
    let loaded = config::load(&sources_of(path), |values| {
        let stores = read_stores(values);
        log_warnings(&values.warnings);
        stores
    });
    loaded.with_context(|| path.display().to_string())
}

/// Returns a configuration file or an SQLite file as sources. The environment is ignored: it would change both sides.
fn sources_of(path: &Path) -> Sources {
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        Sources {
            file: Some(path.to_owned()),
            ..Sources::default()
        }
    } else {
        let flags = vec![("storage.sqlite.path".to_owned(), path.display().to_string())];
        Sources {
            flags,
            ..Sources::default()
        }
    }
}

pub(super) fn read_stores(values: &mut Values) -> Option<Stores> {
    let (storage, keys) = (StorageConfig::read(values), KeysConfig::read(values));
    storage.zip(keys)
}

/// The backend, and where it keeps the pets. Equal for equal stores.
fn location(storage: &StorageConfig) -> String {
    match storage {
        StorageConfig::Sqlite(sqlite) => {
            let file = sqlite
                .path
                .metadata()
                .map(|file| format!("{}:{}", file.dev(), file.ino()));
            file.unwrap_or_else(|_| sqlite.path.display().to_string())
        }
        storage => storage.to_string(),
    }
}

/// Copies a store. Returns the API keys of the target as well, if there are some.
async fn copy(
    (from, from_keys): Stores,
    (to, to_keys): Stores,
) -> anyhow::Result<(CopySummary, Option<Arc<dyn ApiKeyStore>>)> {
    let (mut source, mut target) = (
        SharedFile::new(FileUse::Read),
        SharedFile::new(FileUse::WriteOrCreate),
    );
    let (from, to) = (
        bulk_storage(from, &mut source).await?,
        bulk_storage(to, &mut target).await?,
    );
    if let KeysConfig::Sqlite(sqlite) = &from_keys {
        let keys = SqliteApiKeyStore::new(source.open(sqlite).await?);
        keys.warn_of_backup().await?;
    }
    let from_keys = api_key_store(&from_keys, &mut source).await?;
    let to_keys = api_key_store(&to_keys, &mut target).await?;
    Ok((
        CopyStore::new(from, to, from_keys.zip(to_keys.clone()))
            .execute()
            .await?,
        to_keys,
    ))
}

fn print_summary(summary: &CopySummary, started: Instant) -> anyhow::Result<()> {
    let api_keys = match &summary.api_keys {
        Some(keys) => format!("{} added", keys.added),
        None => "not copied: --without-keys, or they are part of a configuration".to_owned(),
    };
    let mut lines = vec![
        (
            "pets",
            format!("{}, {} of them added", summary.pets, summary.added),
        ),
        ("pets verified, sha256", summary.digest.clone()),
        ("idempotency keys", summary.idempotency_records.to_string()),
        ("tokens of API keys", api_keys),
    ];
    if let Some(others) = summary
        .api_keys
        .as_ref()
        .map(|keys| &keys.others)
        .filter(|others| !others.is_empty())
    {
        let ids: Vec<_> = others.iter().map(ApiKeyId::as_str).collect();
        let text = format!(
            "{}; revoke those that were revoked in the source",
            ids.join(", ")
        );
        lines.push(("API keys of the target alone", text));
    }
    print_result(&lines, started)
}
