//! The header of the file, in its first page (<https://sqlite.org/fileformat.html>).
//!
//! **Problem.** `cp` over the file keeps its inode, and SQLite goes on with its log and the pages of another store. With
//! a log, SQLite does not compare the header.
//!
//! **Invariant.** The header stays that of the store that was opened: its format, which a backup does not have, and its
//! id. Its change counter never decreases, and while the counter stands still, the file does not become shorter. If
//! SQLite has restored another store into the file, the log has the id of that store. One descriptor reads the header,
//! which is never closed: to close it would release the locks that SQLite has in this process.
//!
//! **Proof.** `tests/sqlite/overwritten.rs`.

use std::{
    fs::File,
    io,
    mem::ManuallyDrop,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{identity::log_path, log};

/// The header of an open file.
pub(super) struct OpenHeader {
    file: ManuallyDrop<File>,
    log: PathBuf,
    last: Mutex<Header>,
}

/// The parts of a header that tell stores apart.
pub(super) struct Header {
    /// Up to the change counter. It has the versions of the format, which are those of a log or not.
    format: [u8; 24],
    /// `user_version`. 0 until the first checkpoint.
    pub(super) store_id: u32,
    size: Size,
}

/// In this order, so that a size that became smaller compares as less.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    change_counter: u32,
    bytes: u64,
}

impl OpenHeader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = ManuallyDrop::new(File::open(path)?);
        let last = Mutex::new(Header::read(&file)?);
        let log = log_path(path);
        Ok(Self { file, log, last })
    }

    /// Whether the file still has the content of the store.
    pub(super) fn is_same(&self) -> bool {
        // It is held while the header is read: otherwise, two threads could compare it with a newer one.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(header) = Header::read(&self.file) else {
            return false;
        };
        // Until the first checkpoint, the file has no id.
        let has_id = last.store_id == 0 || last.store_id == header.store_id;
        let is_store = has_id && header.size >= last.size;
        let is_restored =
            || log::read_store(&self.log).is_some_and(|logged| logged.id == header.store_id);
        let is_same = header.format == last.format && (is_store || is_restored());
        if is_same {
            *last = header;
        }
        is_same
    }
}

impl Header {
    /// Returns `None` if the file has no complete header. The descriptor is not closed either.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = ManuallyDrop::new(File::open(path).ok()?);
        Self::read(&file).ok()
    }

    /// Whether the format is the one with a log, which a backup does not have (offset 18).
    pub(super) fn has_log(&self) -> bool {
        self.format[18..20] == [2, 2]
    }

    fn read(file: &File) -> io::Result<Self> {
        // Before the header: a checkpoint writes the header first, and then extends or truncates the file.
        let length = file.metadata()?.len();
        let mut bytes = [0; 64];
        file.read_exact_at(&mut bytes, 0)?;
        let number = |at| log::number(&bytes, at);
        let page_size = u64::from(number(16) >> 16);
        let mut format = [0; 24];
        format.copy_from_slice(&bytes[..24]);
        Ok(Self {
            format,
            store_id: number(60),
            size: Size {
                change_counter: number(24),
                bytes: length.min(u64::from(number(28)) * page_size),
            },
        })
    }
}
