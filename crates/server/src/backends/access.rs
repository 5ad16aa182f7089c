//! Who uses the backends: the service, or a command.

use std::{path::Path, time::Duration};

use animal_store_adapters_cli::StoreUse;
use animal_store_adapters_sqlite::{FileUse, SqliteFile};
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

/// A use of the backends, with the SQLite file. The first backend that needs the file opens it, and the others share
/// it.
pub(crate) struct Access {
    usage: FileUse,
    file: Option<SqliteFile>,
}

impl Access {
    /// The service, which may create the file and run migrations.
    pub(crate) const fn of_service() -> Self {
        Self {
            usage: FileUse::Create,
            file: None,
        }
    }

    /// A command. It runs no migration on a store that exists, and a storage that is not available is an error.
    pub(crate) const fn of_command(usage: StoreUse) -> Self {
        let usage = match usage {
            StoreUse::Read => FileUse::Read,
            StoreUse::Write => FileUse::Write,
            StoreUse::Create => FileUse::WriteOrCreate,
        };
        Self { usage, file: None }
    }

    pub(super) fn is_of_command(&self) -> bool {
        self.usage != FileUse::Create
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.usage == FileUse::Read
    }

    pub(super) async fn open_file(
        &mut self,
        path: &Path,
        timeout: Duration,
    ) -> anyhow::Result<SqliteFile> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let path = path.to_owned();
        let usage = self.usage;
        let opened = spawn_blocking(move || SqliteFile::open(&path, usage, timeout));
        Ok(self.file.insert(opened.await??).clone())
    }

    /// Registers the metrics of the file, if it was opened.
    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        if let Some(file) = &self.file {
            file.register_metrics(registry);
        }
    }
}
