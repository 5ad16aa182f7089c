use std::io::{self, Cursor, Read};

use animal_store_app::ports::ImportSource;
use sha2::{Digest, Sha256};

/// Number of bytes at the beginning of a file that identify it. They are read at once: few of them let a fuzz target
/// split the rest.
const IDENTIFYING_BYTES: u64 = if cfg!(fuzzing) { 16 } else { 64 * 1024 };

/// The byte order mark of UTF-8, which some programs write at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A file that is imported. It may be a pipe, so nothing is read twice.
pub(crate) struct Input {
    pub(crate) id: ImportSource,
    pub(crate) reader: Box<dyn Read + Send>,
}

impl Input {
    /// Reads the beginning of a file, by which an import recognises it. The byte order mark is skipped.
    pub(crate) fn identify(mut reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut beginning = Vec::new();
        reader.by_ref().take(IDENTIFYING_BYTES).read_to_end(&mut beginning)?;
        let id = ImportSource(Sha256::digest(&beginning).into());
        let mark = if beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut beginning = Cursor::new(beginning);
        beginning.set_position(mark as u64);
        Ok(Self { id, reader: Box::new(beginning.chain(reader)) })
    }
}
