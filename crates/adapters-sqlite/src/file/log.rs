//! The log (<https://sqlite.org/fileformat.html#the_write_ahead_log>): which store it belongs to.
//!
//! The log keeps its frames after a checkpoint, until the next commit. SQLite locks no byte of it, so it can be closed.

use std::{collections::HashSet, fs::File, io, os::unix::fs::FileExt, path::Path};

const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Offset of `user_version` in the first page.
const STORE_ID: u64 = 60;

/// Offset of the bytes that SQLite locks. Their page is never used.
const LOCK_OFFSET: u32 = 1 << 30;

/// The store that the log belongs to.
pub(super) struct LoggedStore {
    pub(super) id: u32,
    /// Whether the log has each page of the store. It is so after a restore by SQLite.
    pub(super) is_complete: bool,
}

/// Reads the last committed copy of the first page, or returns `None` if the log has no such copy.
pub(super) fn read_store(path: &Path) -> Option<LoggedStore> {
    let log = File::open(path).ok()?;
    let header: [u8; 32] = read(&log, 0).ok()?;
    let page_size = number(&header, 8);
    let lock_page = LOCK_OFFSET.checked_div(page_size)? + 1;
    let salts = &header[16..24];
    let mut written = None;
    let mut written_pages = Vec::new();
    let mut committed = None;
    let mut committed_pages = HashSet::new();
    let mut last_page = 0;
    let mut offset = LOG_HEADER_BYTES;
    while let Ok(frame) = read::<24>(&log, offset) {
        // A frame with other salts is from before the log began again.
        if frame[8..16] != *salts {
            break;
        }
        let page = offset + FRAME_HEADER_BYTES;
        let page_number = number(&frame, 0);
        written_pages.push(page_number);
        if page_number == 1 {
            // A crash may have cut off the last frame.
            let Ok(store_id) = read(&log, page + STORE_ID) else {
                break;
            };
            written = Some(u32::from_be_bytes(store_id));
        }
        // The size of the store in pages, if the frame is the last one of a commit.
        let size = number(&frame, 4);
        if size > 0 {
            committed = written;
            committed_pages.extend(written_pages.drain(..));
            last_page = size;
        }
        offset = page + u64::from(page_size);
    }
    Some(LoggedStore {
        id: committed?,
        is_complete: (1..=last_page)
            .all(|page| page == lock_page || committed_pages.contains(&page)),
    })
}

fn read<const BYTES: usize>(file: &File, offset: u64) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]))
}
