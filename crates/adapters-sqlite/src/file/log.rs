//! The log of the file (`-wal`) and its lock, which shows whether other processes have the file open.
//!
//! Each process holds a shared lock while it has the file open. A process that opens or closes the file holds an
//! exclusive lock for that moment, if it is the only one. SQLite itself does not lock the log.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use super::identity::FileIdentity;

/// The locked log of an open file.
pub(super) struct Log(File);

/// Returns the path of the log.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

impl Log {
    /// Opens the log of a file to which this process is connected: SQLite has created it and does not remove it.
    /// `None` if another process has just removed it.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let path = log_path(path);
        let log = File::open(&path)?;
        let opened = FileIdentity::from_metadata(&log.metadata()?);
        Ok((opened == FileIdentity::from_path(&path)?).then_some(Self(log)))
    }

    /// Tries to lock the log for this process alone. A file system without locks has one process.
    pub(super) fn try_lock_alone(&self) -> bool {
        !matches!(self.0.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Tries to lock the log beside other processes.
    pub(super) fn try_lock_shared(&self) -> bool {
        !matches!(self.0.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Whether nothing was written since the log was created.
    pub(super) fn is_empty(&self) -> bool {
        self.0.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }
}
