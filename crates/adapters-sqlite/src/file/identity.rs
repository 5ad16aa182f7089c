use std::{
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::FileUse;

/// Greatest number of symbolic links that Linux follows.
const MAX_LINKS: usize = 40;

/// A file, and those beside it if the file is written. None is opened here: a process that closes a file loses all its
/// locks of it, also those of SQLite.
pub(super) struct Identity {
    pub(super) inodes: Inodes,
    /// Those of the file, its log and the index.
    pub(super) permissions: [Option<Permissions>; 3],
}

/// Device and inode of each file. While a connection is open, SQLite keeps the same log and index, and makes no journal.
#[derive(PartialEq, Eq)]
pub(super) struct Inodes {
    pub(super) file: (u64, u64),
    log: Option<(u64, u64)>,
    pub(super) index: Option<(u64, u64)>,
    /// The next start after a crash would write it into the file.
    journal: Option<(u64, u64)>,
}

/// They decide whether a file is believed.
#[derive(PartialEq, Eq)]
pub(super) struct Permissions {
    owner: u32,
    group: u32,
    mode: u32,
}

impl Identity {
    /// Returns the identity of the file that the path names now.
    pub(super) fn of(path: &Path, usage: FileUse) -> io::Result<Self> {
        let target = target_of(path);
        let of_written = |suffix| {
            let metadata = beside(&target, suffix).metadata().ok();
            metadata.filter(|_| usage != FileUse::Read)
        };
        let file = path.metadata()?;
        let log = of_written("-wal");
        let index = of_written("-shm");
        Ok(Self {
            inodes: Inodes {
                file: inode(&file),
                log: log.as_ref().map(inode),
                index: index.as_ref().map(inode),
                journal: of_written("-journal").as_ref().map(inode),
            },
            permissions: [Some(file), log, index]
                .map(|file| file.map(|file| Permissions::of(&file))),
        })
    }
}

impl Permissions {
    fn of(file: &Metadata) -> Self {
        Self {
            owner: file.uid(),
            group: file.gid(),
            mode: file.mode(),
        }
    }
}

fn inode(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns the path of the log, which is beside the file that a symbolic link names, even if that file is missing.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    beside(&target_of(path), "-wal")
}

/// Returns the path that a path names through symbolic links. SQLite makes files beside it.
pub(super) fn target_of(path: &Path) -> PathBuf {
    targets(path).pop().expect("it has the path")
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
