use animal_store_adapters_sqlite::{self as sqlite, SqliteFile, SqliteFileError};
use anyhow::anyhow;
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use crate::config::SqliteConfig;

/// How a process uses the SQLite file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// Reads an existing file, and changes no byte of it.
    Read,
    /// Writes an existing file with the current schema.
    Write,
    /// Writes the file, and creates it if there is none.
    WriteOrCreate,
    /// Serves the file: creates it if there is none, and runs pending migrations.
    Serve,
}

/// The SQLite file. The first adapter that needs it opens it, and the others share it.
pub(crate) struct SharedFile {
    usage: FileUse,
    file: Option<SqliteFile>,
}

impl SharedFile {
    pub(crate) const fn new(usage: FileUse) -> Self {
        Self { usage, file: None }
    }

    pub(crate) async fn open(&mut self, config: &SqliteConfig) -> anyhow::Result<SqliteFile> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let (path, timeout, usage) = (config.path.clone(), config.settings.timeout, self.usage);
        let opened = spawn_blocking(move || {
            let is_new = || path.metadata().map_or(true, |file| file.len() == 0);
            let usage = match usage {
                FileUse::Read => sqlite::FileUse::Read,
                FileUse::WriteOrCreate if is_new() => sqlite::FileUse::Create,
                FileUse::Write | FileUse::WriteOrCreate => sqlite::FileUse::Write,
                FileUse::Serve => sqlite::FileUse::Create,
            };
            SqliteFile::open(&path, usage, timeout)
        });
        Ok(self.file.insert(opened.await??).clone())
    }

    /// Registers the metrics of the file, if it was opened.
    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        if let Some(file) = &self.file {
            file.register_metrics(registry);
        }
    }
}

/// Adds the flag that makes a new store to the error of a missing file.
pub(crate) fn suggest_create(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<SqliteFileError>() {
        Some(missing) if missing.is_missing() => anyhow!("{error}; to make a new store, add --create"),
        _ => error,
    }
}
