//! Commands on the stores that the configuration selects: opens them and runs the command.

use std::{ffi::OsStr, path::Path};

use animal_store_adapter_kit::this_user;
use animal_store_adapters_cli::{
    StoreUse, UsageError,
    backup::{self, Backup, BackupArgs},
    copy::{self, CopyArgs},
    keys::{self, OpenedKeys},
    pets::{self, OpenedPets},
};
use animal_store_adapters_sqlite::NewBackup;
use animal_store_app::{ApiKeyStores, CopyStore};
use animal_store_telemetry::CommandLog;
use anyhow::{Context, ensure};
use nix::unistd::gethostname;
use prometheus_client::registry::Registry;

use super::command::{log_warnings, start};
use crate::{
    backends::{Access, sqlite},
    config::{self, ApiKeysConfig, Sources, StorageConfig, Stores},
};

/// Runs a command of `keys`.
pub(super) async fn keys(
    command: keys::Command,
    sources: &Sources,
    log: &CommandLog,
) -> anyhow::Result<()> {
    let config = start(sources, log, ApiKeysConfig::read)?;
    let open = async |usage| {
        let mut access = Access::of_command(usage);
        let store = config.backend().open_store(&mut access).await?;
        let store = store.ok_or_else(|| {
            let reason = "keys.backend is memory: the API keys are set by keys.memory.tokens";
            UsageError(reason.to_owned())
        })?;
        Ok(OpenedKeys {
            store,
            place: config.backend().administered_place(),
            operator: operator(),
        })
    };
    keys::run(command, open).await
}

/// Runs a command of `pets`.
pub(super) async fn pets(
    command: pets::Command,
    sources: &Sources,
    log: &CommandLog,
) -> anyhow::Result<()> {
    let config = start(sources, log, StorageConfig::read)?;
    let open = async |usage| {
        let mut access = Access::of_command(usage);
        let mut registry = Registry::default();
        let storage = config.backend().start(&mut access, &mut registry).await?;
        Ok(OpenedPets {
            repository: (storage.new_repository)(),
            writer: storage.writer,
        })
    };
    pets::run(command, open).await
}

/// Runs `copy`.
pub(super) async fn copy(args: CopyArgs, log: &CommandLog) -> anyhow::Result<()> {
    // The log is that of the target.
    let target = start(&sources_of(&args.to)?, log, Stores::read);
    let to = target.with_context(|| args.to.display().to_string())?;
    let open = async {
        let from = load_path(&args.from)?;
        ensure!(
            from.pets.backend().identity() != to.pets.backend().identity(),
            UsageError(format!(
                "{} and {} name the same store",
                args.from.display(),
                args.to.display()
            ))
        );
        open_copy(from, to, !args.without_keys).await
    };
    copy::run(open).await
}

/// Runs `backup`.
pub(super) async fn back_up(
    args: BackupArgs,
    sources: &Sources,
    log: &CommandLog,
) -> anyhow::Result<()> {
    let stores = start(sources, log, Stores::read)?;
    backup::run(args, async |file: &Path| write_backup(stores, file).await).await
}

async fn write_backup(from: Stores, file: &Path) -> anyhow::Result<Backup> {
    if let StorageConfig::Sqlite(sqlite) = &from.pets
        && let ApiKeysConfig::Sqlite(_) = &from.api_keys
    {
        let source = sqlite.open(&mut Access::of_command(StoreUse::Read)).await?;
        let backup = NewBackup::create(file)?;
        let pets = backup.vacuum_from(source).await?;
        backup.finish()?;
        return Ok(Backup::Snapshot { pets });
    }
    let backup = NewBackup::create(file)?;
    let to = load_path(&backup.path())?;
    let copy = open_copy(from, to, true).await?;
    let summary = copy.execute().await?;
    // Closes the file.
    drop(copy);
    backup.finish()?;
    Ok(Backup::Copy(summary))
}

/// Opens both sides of a copy.
async fn open_copy(from: Stores, to: Stores, has_api_keys: bool) -> anyhow::Result<CopyStore> {
    let mut source = Access::of_command(StoreUse::Read);
    let mut target = Access::of_command(StoreUse::Create);
    let from_pets = from.pets.backend().open_bulk(&mut source).await?;
    let to_pets = to.pets.backend().open_bulk(&mut target).await?;
    let api_keys = if has_api_keys {
        if let ApiKeysConfig::Sqlite(sqlite) = &from.api_keys {
            sqlite.open(&mut source).await?.warn_of_backup().await?;
        }
        let from_keys = from.api_keys.backend().open_store(&mut source).await?;
        let to_keys = to.api_keys.backend().open_store(&mut target).await?;
        let stores = from_keys.zip(to_keys);
        stores.map(|(from, to)| ApiKeyStores { from, to })
    } else {
        None
    };
    Ok(CopyStore::new(from_pets, to_pets, api_keys))
}

/// Reads the stores in a configuration file, or those of an SQLite file, and logs the warnings.
fn load_path(path: &Path) -> anyhow::Result<Stores> {
    let mut values = config::read(&sources_of(path)?);
    let stores = values
        .open(Stores::read)
        .with_context(|| path.display().to_string())?;
    log_warnings(&values.warnings());
    Ok(stores)
}

/// Returns a configuration file or an SQLite file as sources. The environment is ignored: it would change both sides.
///
/// # Errors
/// If the setting of the SQLite file would be another path: a setting is UTF-8, and trimmed.
fn sources_of(path: &Path) -> Result<Sources, UsageError> {
    let mut sources = Sources::default();
    if path.extension() == Some(OsStr::new("toml")) {
        sources.file = Some(path.to_owned());
        return Ok(sources);
    }
    let file = path.to_str().filter(|file| file.trim() == *file);
    let file = file.ok_or_else(|| {
        let path = path.display();
        UsageError(format!(
            "{path} is not UTF-8, or begins or ends with white space: rename the file"
        ))
    })?;
    sources.flags = vec![(sqlite::PATH.to_owned(), file.to_owned())];
    Ok(sources)
}

/// The user and the machine of this process, for the audit log.
pub(super) fn operator() -> String {
    let host = gethostname().unwrap_or_default();
    format!("{}@{}", this_user(), host.to_string_lossy())
}
