use std::{
    io::{self, BufWriter, Write},
    thread,
    time::{Duration, Instant},
};

/// Between two writes to the log. It is what a line may be late by, while others come.
const PAUSE: Duration = Duration::from_millis(5);

/// As many bytes as a busy service logs in that time.
const CAPACITY: usize = 128 * 1024;

/// Writes at once, then rests, so that lines gather: whoever logs meanwhile has no thread to wake up.
pub(super) struct Paced<W: Write>(BufWriter<W>);

impl<W: Write> Paced<W> {
    pub(super) fn new(inner: W) -> Self {
        Self(BufWriter::with_capacity(CAPACITY, inner))
    }
}

impl<W: Write> Write for Paced<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        let start = Instant::now();
        // Something else may wake the thread up.
        while let Some(left) = PAUSE.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            thread::park_timeout(left);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_is_written_before_the_rest() {
        let mut written = Vec::new();
        let start = Instant::now();
        let mut paced = Paced::new(&mut written);
        paced.write_all(b"line\n").unwrap();
        paced.flush().unwrap();
        assert!(start.elapsed() >= PAUSE);
        drop(paced);
        assert_eq!(written, b"line\n");
    }
}
