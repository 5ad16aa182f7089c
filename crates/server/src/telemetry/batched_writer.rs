use std::{
    io::{self, BufWriter, Write},
    mem, thread,
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// Pause after each write. A line is written this much later at most, while others arrive.
const PAUSE: Duration = Duration::from_millis(5);

/// Buffer size in bytes: enough for the lines of a busy service in one pause.
const CAPACITY: usize = 128 * 1024;

/// Writes at once, then pauses so that lines accumulate. During the pause, a thread that logs wakes no other thread up.
///
/// It never fails: lines that cannot be written are kept while there is room, then dropped. An empty line is a mark:
/// the next flush publishes the number of marks, so that the end of the process can wait for it.
pub(super) struct BatchedWriter<W: Write, R> {
    buffer: BufWriter<W>,
    failing: bool,
    /// Called with the first error of each outage.
    report: R,
    marks: usize,
    flushed: watch::Sender<usize>,
}

impl<W: Write, R: FnMut(&io::Error)> BatchedWriter<W, R> {
    pub(super) fn new(inner: W, report: R, flushed: watch::Sender<usize>) -> Self {
        Self { buffer: BufWriter::with_capacity(CAPACITY, inner), failing: false, report, marks: 0, flushed }
    }

    fn failed(&mut self, error: &io::Error) {
        if !self.failing {
            (self.report)(error);
        }
        self.failing = true;
    }
}

impl<W: Write, R: FnMut(&io::Error)> Write for BatchedWriter<W, R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.buffer.write_all(bytes) {
            self.failed(&error);
        }
        Ok(bytes.len())
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        self.marks += usize::from(line.is_empty());
        self.write(line).map(|_| ())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.buffer.flush() {
            Ok(()) => self.failing = false,
            Err(error) => self.failed(&error),
        }
        self.flushed.send_if_modified(|flushed| mem::replace(flushed, self.marks) != self.marks);
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
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_flush_writes_and_then_pauses() {
        let mut written = Vec::new();
        let start = Instant::now();
        let mut writer =
            BatchedWriter::new(&mut written, |error: &io::Error| panic!("{error}"), watch::Sender::default());
        writer.write_all(b"line\n").unwrap();
        writer.flush().unwrap();
        assert!(start.elapsed() >= PAUSE);
        drop(writer);
        assert_eq!(written, b"line\n");
    }

    /// Takes what it is given, or fails.
    struct Output<'a>(&'a RefCell<Result<Vec<u8>, io::ErrorKind>>);

    impl Write for Output<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match &mut *self.0.borrow_mut() {
                Ok(written) => written.write(bytes),
                Err(kind) => Err((*kind).into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_outage_is_reported_once_and_its_first_lines_are_written_after_it() {
        let output = RefCell::new(Err(io::ErrorKind::StorageFull));
        let mut reported = Vec::new();
        let report = |error: &io::Error| reported.push(error.kind());
        let mut writer = BatchedWriter::new(Output(&output), report, watch::Sender::default());
        let line = vec![b'x'; CAPACITY / 2];
        for _ in 0..2 {
            for _ in 0..3 {
                writer.write_all(&line).unwrap();
                writer.flush().unwrap();
            }
            *output.borrow_mut() = Ok(Vec::new());
            writer.flush().unwrap();
            let written = mem::replace(&mut *output.borrow_mut(), Err(io::ErrorKind::BrokenPipe));
            assert_eq!(written.unwrap().len(), CAPACITY);
        }
        drop(writer);
        assert_eq!(reported, [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe]);
    }
}
