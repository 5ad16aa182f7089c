//! The header of the file, in its first page (<https://sqlite.org/fileformat.html>).
//!
//! **Problem.** `cp` over the file keeps its inode, and SQLite goes on with its log and the pages of another store. With
//! a log, SQLite does not compare the header.
//!
//! **Invariant.** The header stays that of the store that was opened: its format, which a backup does not have, and its
//! id. Its change counter never decreases, and while the counter stands still, the file does not become shorter. One
//! descriptor reads it, which is never closed: to close it would release the locks that SQLite has in this process.
//!
//! **Proof.** `tests/sqlite/overwritten.rs`.

use std::{
    fs::File,
    io,
    mem::ManuallyDrop,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    sync::{Mutex, PoisonError},
};

use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};

use crate::{error::Problem, values::number};

/// The header of an open file.
pub(super) struct OpenHeader {
    file: ManuallyDrop<File>,
    first: Header,
    /// 0 if there was no space for an id.
    store_id: i64,
    last: Mutex<Size>,
}

/// The parts of a header that tell stores apart.
#[derive(Clone, Copy)]
struct Header {
    /// Up to the change counter: versions 2 mean a log.
    format: [u8; 24],
    /// `user_version`. Until the checkpoint that follows, an id is in the log only.
    store_id: i64,
    size: Size,
}

/// In this order, so that a size that became smaller compares as less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    change_counter: u32,
    bytes: u64,
}

impl OpenHeader {
    pub(super) fn open(path: &Path, connection: &mut SqliteConnection) -> Result<Self, Problem> {
        let file = ManuallyDrop::new(File::open(path)?);
        let first = Header::read(&file)?;
        Ok(Self {
            file,
            first,
            store_id: store_id(connection)?,
            last: Mutex::new(first.size),
        })
    }

    /// Device and inode.
    pub(super) fn file_id(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|file| (file.dev(), file.ino()))
    }

    /// Whether the file still has the content of the store.
    pub(super) fn is_same(&self) -> bool {
        // Two threads that compare an older and a newer header would find a size that became smaller.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(header) = Header::read(&self.file) else {
            return false;
        };
        let ids = [self.store_id, self.first.store_id];
        let is_same = header.format == self.first.format
            && (self.store_id == 0 || ids.contains(&header.store_id))
            && header.size >= *last;
        if is_same {
            *last = header.size;
        }
        is_same
    }
}

impl Header {
    fn read(file: &File) -> io::Result<Self> {
        // Before the header: a checkpoint writes the header first, and then extends or truncates the file.
        let length = file.metadata()?.len();
        let mut bytes = [0; 64];
        file.read_exact_at(&mut bytes, 0)?;
        let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let page_size = u64::from(number(16) >> 16);
        let mut format = [0; 24];
        format.copy_from_slice(&bytes[..24]);
        Ok(Self {
            format,
            store_id: number(60).cast_signed().into(),
            size: Size {
                change_counter: number(24),
                bytes: length.min(u64::from(number(28)) * page_size),
            },
        })
    }
}

/// Gives the store a random id unless it has one, and writes the id to the first page.
pub(super) fn identify(connection: &mut SqliteConnection) -> QueryResult<()> {
    if store_id(connection)? == 0 {
        connection.immediate_transaction(|connection| match store_id(connection)? {
            0 => set_random_id(connection),
            // Another process has just done it.
            _ => Ok(()),
        })?;
        connection.batch_execute("PRAGMA wal_checkpoint")?;
    }
    Ok(())
}

/// Gives the store another id.
pub(crate) fn set_random_id(connection: &mut SqliteConnection) -> QueryResult<()> {
    let id = number(connection, "SELECT 1 + abs(random() % 2147483647)")?;
    connection.batch_execute(&format!("PRAGMA user_version = {id}"))
}

fn store_id(connection: &mut SqliteConnection) -> QueryResult<i64> {
    number(connection, "PRAGMA user_version")
}
