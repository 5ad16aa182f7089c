use std::{
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::FileUse;

/// Greatest number of symbolic links that Linux follows.
const MAX_LINKS: usize = 40;

/// Device and inode of a file, and of its log if the file is written. SQLite keeps the same log while a connection is
/// open. Neither is opened here: a process that closes a file loses all its locks of it, also those of SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) file: (u64, u64),
    log: Option<(u64, u64)>,
}

impl Identity {
    /// Returns the identity of the file that the path names now.
    pub(super) fn of(path: &Path, usage: FileUse) -> io::Result<Self> {
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let log = if usage == FileUse::Read {
            None
        } else {
            log_path(path).metadata().ok()
        };
        Ok(Self {
            file: identity(path.metadata()?),
            log: log.map(identity),
        })
    }
}

/// Returns the path of the log, which is beside the file that a symbolic link names, even if that file is missing.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    log_paths(path).pop().expect("it has that of the path")
}

/// Returns the path of the index of the log, which is beside the log.
pub(super) fn index_path(path: &Path) -> PathBuf {
    let target = targets(path).pop().expect("it has the path");
    beside(&target, "-shm")
}

/// Returns the path of a log beside the path, and beside each file that it names through symbolic links. SQLite uses
/// the last one.
pub(super) fn log_paths(path: &Path) -> Vec<PathBuf> {
    let targets = targets(path).into_iter();
    targets.map(|target| beside(&target, "-wal")).collect()
}

/// Returns the path, and each path that it names through symbolic links.
fn targets(path: &Path) -> Vec<PathBuf> {
    let mut targets = vec![path.to_owned()];
    while targets.len() <= MAX_LINKS
        && let Some(last) = targets.last()
        && let Ok(link) = last.read_link()
    {
        targets.push(folder_of(last).join(link));
    }
    targets
}

/// Returns the path of a file whose name continues that of another one.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
