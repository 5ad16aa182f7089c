//! A snapshot of the file as another file, by `VACUUM INTO`.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf, absolute},
};

use diesel::{RunQueryDsl, sql_query, sql_types::Text};
use tempfile::Builder;
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::SqliteFile;

/// The snapshot was not written.
#[derive(Debug, Error)]
#[error("the snapshot {target} cannot be written: {reason}")]
pub struct SnapshotFileError {
    target: PathBuf,
    reason: String,
}

pub(super) async fn write(file: SqliteFile, target: PathBuf) -> Result<(), SnapshotFileError> {
    let written = spawn_blocking({
        let target = target.clone();
        move || write_blocking(&file, &target)
    });
    let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
    written.map_err(|reason| SnapshotFileError { target, reason })
}

/// Writes a temporary file in the folder of the target, and gives it the target's name when it is complete. SQLite does
/// not synchronize it with the disk.
fn write_blocking(file: &SqliteFile, target: &Path) -> Result<(), String> {
    let message = |error: io::Error| error.to_string();
    let target = absolute(target).map_err(message)?;
    if target.try_exists().map_err(message)? {
        return Err("a file with this name exists".to_owned());
    }
    let folder = target.parent().ok_or("it is a folder")?;
    let prefix = format!(".{}.partial-", target.file_name().unwrap_or_default().to_string_lossy());
    let temporary = Builder::new().prefix(&prefix).tempfile_in(folder).map_err(message)?;
    let path = temporary.path().to_str().ok_or("the path is not UTF-8")?;
    let mut connection = file.connect().map_err(|error| error.to_string())?;
    let statement = sql_query("VACUUM INTO ?").bind::<Text, _>(path);
    statement.execute(&mut *connection).map_err(|error| error.to_string())?;
    temporary.as_file().sync_all().map_err(message)?;
    temporary.persist_noclobber(&target).map_err(|error| error.error.to_string())?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(message)
}
