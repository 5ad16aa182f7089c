//! A backup: a new file that gets its name when it is complete, and that is a store of its own.

use std::{
    error::Error,
    fs::{File, hard_link},
    path::{Path, PathBuf, absolute},
};

use diesel::{RunQueryDsl, connection::SimpleConnection, sql_query, sql_types::Text};
use tempfile::{Builder, TempDir};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::{SqliteFile, file};

/// The backup was not written.
#[derive(Debug, Error)]
#[error("the backup {target} cannot be written: {reason}")]
pub struct BackupError {
    target: PathBuf,
    reason: String,
}

type Failure = Box<dyn Error + Send + Sync>;

/// A backup that is not complete. It is in a temporary folder beside its target, which is removed if this is dropped.
pub struct NewBackup {
    target: PathBuf,
    folder: TempDir,
}

impl NewBackup {
    /// Creates the temporary folder.
    ///
    /// # Errors
    /// If the target or its log exists, or if the folder of the target cannot be written.
    pub fn create(target: &Path) -> Result<Self, BackupError> {
        let failed = |reason: String| BackupError { target: target.to_owned(), reason };
        if target.symlink_metadata().is_ok() || file::log_path(target).exists() {
            return Err(failed("a file with this name, or a log (-wal) beside it, exists".to_owned()));
        }
        let absolute = absolute(target).map_err(|error| failed(error.to_string()))?;
        let parent = absolute.parent().ok_or_else(|| failed("it is a folder".to_owned()))?;
        let prefix = format!(".{}.partial-", absolute.file_name().unwrap_or_default().to_string_lossy());
        let folder = Builder::new().prefix(&prefix).tempdir_in(parent).map_err(|error| failed(error.to_string()))?;
        Ok(Self { target: absolute, folder })
    }

    /// The file before it is complete. It does not exist yet.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// Writes the committed content of a file, API keys included. Creates go on meanwhile.
    ///
    /// # Errors
    /// If the file cannot be read, or the backup cannot be written.
    pub async fn vacuum_from(&self, file: SqliteFile) -> Result<(), BackupError> {
        let path = self.path();
        let written = spawn_blocking(move || -> Result<(), Failure> {
            file::create(&path)?;
            let path = path.to_str().ok_or("the path is not UTF-8")?;
            sql_query("VACUUM INTO ?").bind::<Text, _>(path).execute(&mut file.connect()?)?;
            Ok(())
        });
        written.await.unwrap_or_else(|error| Err(error.into())).map_err(|error| self.error(&*error))
    }

    /// Writes the backup to the disk, as one file, and gives it its name. No connection to it may be open.
    ///
    /// # Errors
    /// If it cannot be written, or if a file with its name exists by now.
    pub fn finish(self) -> Result<(), BackupError> {
        let written = || -> Result<(), Failure> {
            let path = self.path();
            // A log would be a second file. The connection is closed before the file is opened.
            file::connect_once(&path)?.batch_execute("PRAGMA journal_mode = DELETE")?;
            File::open(&path)?.sync_all()?;
            // Unlike a renaming, this replaces no file.
            hard_link(&path, &self.target)?;
            Ok(File::open(self.target.parent().unwrap_or(Path::new("/")))?.sync_all()?)
        };
        written().map_err(|error| self.error(&*error))
    }

    fn error(&self, error: &dyn Error) -> BackupError {
        BackupError { target: self.target.clone(), reason: error.to_string() }
    }
}
