use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A reader that counts the bytes that were read.
pub(in crate::cli) struct CountedReader<R> {
    reader: R,
    bytes: Arc<AtomicU64>,
}

impl<R> CountedReader<R> {
    pub(in crate::cli) fn new(reader: R) -> Self {
        Self { reader, bytes: Arc::default() }
    }

    /// Returns the number of bytes, which grows with each read.
    pub(in crate::cli) fn count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
