//! The log (<https://sqlite.org/fileformat.html#the_write_ahead_log>): which store it belongs to.
//!
//! The log keeps its frames after a checkpoint, until the next commit. SQLite locks no byte of it, so it can be closed.

use std::{collections::HashSet, fs::File, io, os::unix::fs::FileExt, path::Path};

pub(super) const HEADER_BYTES: u64 = 32;
pub(super) const FRAME_HEADER_BYTES: u64 = 24;

/// Offset of `user_version` in a frame of the first page.
const STORE_ID: usize = 24 + 60;

/// Offset of the bytes that SQLite locks. Their page is never used.
const LOCK_OFFSET: u32 = 1 << 30;

/// The store that the log belongs to.
pub(super) struct LoggedStore {
    pub(super) id: u32,
    /// Whether the log has each page of the store. It is so after a restore by SQLite.
    pub(super) is_complete: bool,
}

/// A copy of a page.
struct Frame {
    page: u32,
    /// If the frame is the last one of a commit, the size of the store in pages; otherwise 0.
    store_pages: u32,
    /// The id of the store, in the first page.
    store_id: u32,
}

/// Reads the last committed copy of the first page, or returns `None` if the log has no such copy.
pub(super) fn read_store(path: &Path) -> Option<LoggedStore> {
    let log = File::open(path).ok()?;
    let header: [u8; 32] = read(&log, 0).ok()?;
    let page_size = number(&header, 8);
    let lock_page = LOCK_OFFSET.checked_div(page_size)? + 1;
    let mut frames = Vec::new();
    let mut offset = HEADER_BYTES;
    // A crash may have cut off the last frame.
    while let Ok(frame) = read::<88>(&log, offset) {
        // A frame with other salts is from before the log began again.
        if frame[8..16] != header[16..24] {
            break;
        }
        frames.push(Frame {
            page: number(&frame, 0),
            store_pages: number(&frame, 4),
            store_id: number(&frame, STORE_ID),
        });
        offset += FRAME_HEADER_BYTES + u64::from(page_size);
    }
    let last_commit = frames.iter().rposition(|frame| frame.store_pages > 0)?;
    frames.truncate(last_commit + 1);
    let store_pages = frames.last()?.store_pages;
    let first_page = frames.iter().rfind(|frame| frame.page == 1)?;
    let pages: HashSet<_> = frames.iter().map(|frame| frame.page).collect();
    let is_in_log = |page| page == lock_page || pages.contains(&page);
    Some(LoggedStore {
        id: first_page.store_id,
        is_complete: (1..=store_pages).all(is_in_log),
    })
}

pub(super) fn read<const BYTES: usize>(file: &File, offset: u64) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Returns the number at this offset, as SQLite writes it.
pub(super) fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_the_page_that_sqlite_locks_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db-wal");
        let log = File::create(&path).expect("a log");
        let write = |number: u32, offset| {
            log.write_all_at(&number.to_be_bytes(), offset)
                .expect("a log");
        };
        // A page of 1 GiB, so that the second one has the locked bytes.
        write(LOCK_OFFSET, 8);
        let third = HEADER_BYTES + FRAME_HEADER_BYTES + u64::from(LOCK_OFFSET);
        for (page, offset) in [(1, HEADER_BYTES), (3, third)] {
            write(page, offset);
            write(3, offset + 4);
            write(7, offset + STORE_ID as u64);
        }
        let store = read_store(&path).expect("a store");
        assert_eq!((store.id, store.is_complete), (7, true));
    }
}
