use std::{
    io::{self, BufWriter, Write},
    thread,
    time::Duration,
};

/// Pause after each write. A line is written this much later at most, while others arrive.
const PAUSE: Duration = Duration::from_millis(5);

/// Buffer size in bytes: enough for the lines of a busy service in one pause.
const CAPACITY: usize = 128 * 1024;

/// Writes at once, then pauses so that lines accumulate. During the pause, a thread that logs wakes no other thread up.
///
/// It never fails: lines that cannot be written are kept while there is room, then dropped.
pub(super) struct BatchedWriter<W: Write, R> {
    buffer: BufWriter<W>,
    failing: bool,
    /// Called with the first error of each outage.
    report: R,
}

impl<W: Write, R: FnMut(&io::Error)> BatchedWriter<W, R> {
    pub(super) fn new(inner: W, report: R) -> Self {
        Self { buffer: BufWriter::with_capacity(CAPACITY, inner), failing: false, report }
    }

    pub(super) fn add(&mut self, line: &[u8]) {
        if let Err(error) = self.buffer.write_all(line) {
            self.failed(&error);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the pause is the batching")]
    pub(super) fn flush_and_pause(&mut self) {
        match self.buffer.flush() {
            Ok(()) => self.failing = false,
            Err(error) => self.failed(&error),
        }
        thread::sleep(PAUSE);
    }

    fn failed(&mut self, error: &io::Error) {
        if !self.failing {
            (self.report)(error);
        }
        self.failing = true;
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, mem, time::Instant};

    use super::*;

    #[test]
    fn a_flush_writes_and_then_pauses() {
        let mut written = Vec::new();
        let start = Instant::now();
        let mut writer = BatchedWriter::new(&mut written, |error: &io::Error| panic!("{error}"));
        writer.add(b"line\n");
        writer.flush_and_pause();
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
        let mut writer = BatchedWriter::new(Output(&output), report);
        let line = vec![b'x'; CAPACITY / 2];
        for _ in 0..2 {
            for _ in 0..3 {
                writer.add(&line);
                writer.flush_and_pause();
            }
            *output.borrow_mut() = Ok(Vec::new());
            writer.flush_and_pause();
            let written = mem::replace(&mut *output.borrow_mut(), Err(io::ErrorKind::BrokenPipe));
            assert_eq!(written.unwrap().len(), CAPACITY);
        }
        drop(writer);
        assert_eq!(reported, [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe]);
    }
}
