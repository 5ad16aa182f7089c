//! The log (<https://sqlite.org/fileformat.html#the_write_ahead_log>): which store its last header belongs to.
//!
//! The log keeps its frames after a checkpoint, until the next commit. SQLite locks no byte of it, so it can be closed.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Offset of `user_version` in the first page.
const STORE_ID: u64 = 60;

/// Returns the id of the store in the last committed copy of the first page, or `None` if the log has no such copy.
pub(super) fn last_store_id(path: &Path) -> Option<u32> {
    let log = File::open(path).ok()?;
    let header: [u8; 32] = read(&log, 0).ok()?;
    let page_size = number(&header, 8);
    let salts = &header[16..24];
    let mut written = None;
    let mut committed = None;
    let mut offset = LOG_HEADER_BYTES;
    while let Ok(frame) = read::<24>(&log, offset) {
        // A frame with other salts is from before the log began again.
        if frame[8..16] != *salts {
            break;
        }
        let page = offset + FRAME_HEADER_BYTES;
        if number(&frame, 0) == 1 {
            let store_id = read(&log, page + STORE_ID).ok()?;
            written = Some(u32::from_be_bytes(store_id));
        }
        let is_commit = number(&frame, 4) > 0;
        if is_commit {
            committed = written;
        }
        offset = page + u64::from(page_size);
    }
    committed
}

fn read<const BYTES: usize>(file: &File, offset: u64) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]))
}
