//! The last commit in the log, of which the index (`-shm`) has a copy (<https://sqlite.org/walformat.html>).
//!
//! **Problem.** `cp` over the log keeps its inode. SQLite finds the end of the log in the index and goes on behind it,
//! but after a crash, a start reads the log alone, and finds none of these commits.
//!
//! **Invariant.** The log has the salts that the index names, which change if the log begins again, and the last frame
//! has the checksum that the index names, which covers each frame before it. A descriptor of the index is never closed:
//! to close it would release the locks that SQLite has in this process.
//!
//! **Proof.** `tests/sqlite/overwritten.rs`.

use std::{fs::File, io, mem::ManuallyDrop, path::Path};

use super::{
    identity::{beside, log_path, target_of},
    log::{self, FRAME_HEADER_BYTES, HEADER_BYTES},
};

/// The log and the index of an open file.
pub(super) struct OpenLog {
    index: ManuallyDrop<File>,
    log: File,
}

/// The last frame of the last commit.
#[derive(PartialEq, Eq)]
struct LastFrame {
    number: u64,
    page_size: u64,
    salts: [u8; 8],
    checksum: [u32; 2],
}

impl OpenLog {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let index = beside(&target_of(path), "-shm");
        Ok(Self {
            index: ManuallyDrop::new(File::open(index)?),
            log: File::open(log_path(path))?,
        })
    }

    /// Whether the log still has the content that the index describes.
    pub(super) fn is_same(&self) -> bool {
        self.has_last_frame().unwrap_or(false)
    }

    fn has_last_frame(&self) -> io::Result<bool> {
        let mut expected = self.last_frame()?;
        while let Some(frame) = &expected
            && !self.has(frame)
        {
            // Another process that has the write lock may begin the log again meanwhile.
            let current = self.last_frame()?;
            if current == expected {
                return Ok(false);
            }
            expected = current;
        }
        Ok(true)
    }

    /// Returns `None` if the log has no commit, and while another process changes the index, whose two headers differ.
    fn last_frame(&self) -> io::Result<Option<LastFrame>> {
        let headers = log::read::<96>(&self.index, 0)?;
        let (header, second) = headers.split_at(48);
        // SQLite writes numbers in the order of the machine here.
        let number = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let frame = number(16);
        if frame == 0 || header != second {
            return Ok(None);
        }
        let page_size = u64::from(u16::from_ne_bytes([header[14], header[15]]));
        Ok(Some(LastFrame {
            number: frame.into(),
            // 65,536 is written as 1.
            page_size: if page_size == 1 { 1 << 16 } else { page_size },
            salts: [0, 1, 2, 3, 4, 5, 6, 7].map(|byte| header[32 + byte]),
            checksum: [number(24), number(28)],
        }))
    }

    fn has(&self, last: &LastFrame) -> bool {
        let offset = HEADER_BYTES + (last.number - 1) * (FRAME_HEADER_BYTES + last.page_size);
        let salts = log::read::<8>(&self.log, 16);
        let checksum = log::read::<8>(&self.log, offset + 16);
        salts.is_ok_and(|salts| salts == last.salts)
            && checksum.is_ok_and(|bytes| [0, 4].map(|at| log::number(&bytes, at)) == last.checksum)
    }
}
