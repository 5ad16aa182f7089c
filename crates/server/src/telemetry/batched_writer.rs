use std::{
    io::{self, BufWriter, Write},
    thread,
    time::{Duration, Instant},
};

/// Pause after each write. A line is written this much later at most, while others arrive.
const PAUSE: Duration = Duration::from_millis(5);

/// Buffer size in bytes: enough for the lines of a busy service in one pause.
const CAPACITY: usize = 128 * 1024;

/// Writes at once, then pauses so that lines accumulate. During the pause, a thread that logs wakes no other thread up.
pub(super) struct BatchedWriter<W: Write>(BufWriter<W>);

impl<W: Write> BatchedWriter<W> {
    pub(super) fn new(inner: W) -> Self {
        Self(BufWriter::with_capacity(CAPACITY, inner))
    }
}

impl<W: Write> Write for BatchedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        let start = Instant::now();
        // A thread can wake up early.
        while let Some(rest) = PAUSE.checked_sub(start.elapsed()).filter(|rest| !rest.is_zero()) {
            thread::park_timeout(rest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_writes_and_then_pauses() {
        let mut written = Vec::new();
        let start = Instant::now();
        let mut writer = BatchedWriter::new(&mut written);
        writer.write_all(b"line\n").unwrap();
        writer.flush().unwrap();
        assert!(start.elapsed() >= PAUSE);
        drop(writer);
        assert_eq!(written, b"line\n");
    }
}
