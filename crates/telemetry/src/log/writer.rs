use std::{
    io::{self, BufWriter, Write},
    thread,
    time::Duration,
};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot};

/// Pause after each write, in which lines accumulate. Meanwhile, a thread that logs wakes no other thread up.
const PAUSE: Duration = Duration::from_millis(5);

/// Buffer size in bytes: enough for the lines of a busy service in one pause.
const CAPACITY: usize = 128 * 1024;

/// The log of a process that serves. It puts each line into a queue, and never blocks: a line for which the queue has
/// no room is dropped and counted. A thread writes the lines until the process ends.
#[derive(Clone)]
pub struct ServiceLog {
    queue: mpsc::Sender<Entry>,
    dropped: Counter,
}

enum Entry {
    Line(Vec<u8>),
    /// Dropped when all lines before it are written.
    Flush(oneshot::Sender<()>),
}

impl ServiceLog {
    /// Starts the thread. `report` is called with the first error of each outage.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        queue_lines: usize,
        report: impl FnMut(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, entries) = mpsc::channel(queue_lines);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(entries, output, report))?;
        Ok(Self {
            queue,
            dropped: Counter::default(),
        })
    }

    /// Returns the counter of the lines that were dropped.
    #[must_use]
    pub fn dropped_lines(&self) -> Counter {
        self.dropped.clone()
    }

    /// Logs the number of dropped lines, and resolves when the queued lines are written.
    pub async fn finish(self) {
        self.flush_queue().await;
        let dropped = self.dropped.get();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "log lines were dropped because their reader was too slow"
            );
            self.flush_queue().await;
        }
    }

    /// Waits for room in the queue, and then until its lines are written, or until the thread has panicked.
    async fn flush_queue(&self) {
        let (sender, flushed) = oneshot::channel();
        let _ = self.queue.send(Entry::Flush(sender)).await;
        let _ = flushed.await;
    }
}

impl Write for ServiceLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(Entry::Line(line.to_vec())).is_err() {
            self.dropped.inc();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all queued lines at once, again and again. Lines that cannot be written are kept while the buffer has room.
#[expect(clippy::disallowed_methods, reason = "the pause is the batching")]
fn write(
    mut entries: mpsc::Receiver<Entry>,
    output: impl Write,
    mut report: impl FnMut(&io::Error),
) {
    let mut buffer = BufWriter::with_capacity(CAPACITY, output);
    let mut is_failing = false;
    while let Some(first) = entries.blocking_recv() {
        let mut next = Some(first);
        let mut written = Ok(());
        let mut flushes = Vec::new();
        while let Some(entry) = next {
            match entry {
                Entry::Line(line) => written = written.and(buffer.write_all(&line)),
                Entry::Flush(sender) => flushes.push(sender),
            }
            next = entries.try_recv().ok();
        }
        let result = written.and(buffer.flush());
        if let Err(error) = &result
            && !is_failing
        {
            report(error);
        }
        is_failing = result.is_err();
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{PipeReader, Read, pipe},
        sync::{Arc, Mutex},
        time::Instant,
    };

    use tokio::time::sleep;

    use super::*;

    /// More than a pipe holds.
    static LINE: [u8; 128 * 1024] = [b'x'; 128 * 1024];

    /// A log whose queue is full, its reader, and the number of queued lines.
    fn full_log() -> (ServiceLog, PipeReader, usize) {
        let (reader, writer) = pipe().expect("a pipe");
        let mut log = ServiceLog::start(writer, 2, |error| panic!("{error}")).expect("a thread");
        let mut lines = 0;
        let start = Instant::now();
        // The thread takes one line, and blocks.
        while lines < 3 {
            assert!(
                start.elapsed() < Duration::from_mins(1),
                "the thread takes no line"
            );
            let before = log.dropped.get();
            log.write_all(&LINE).expect("a queue never fails");
            lines += usize::from(log.dropped.get() == before);
        }
        (log, reader, lines)
    }

    #[test]
    fn a_line_without_room_in_the_queue_is_counted() {
        let (mut log, _reader, _) = full_log();
        let before = log.dropped_lines().get();
        log.write_all(&LINE).expect("a queue never fails");
        assert_eq!(log.dropped_lines().get(), before + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn every_queued_line_is_written_however_late_the_reader_reads() {
        let (log, mut reader, lines) = full_log();
        let end = tokio::spawn(log.finish());
        sleep(Duration::from_hours(1)).await;
        assert!(!end.is_finished());
        let mut bytes = vec![0; lines * LINE.len()];
        let reader = thread::spawn(move || reader.read_exact(&mut bytes));
        end.await.expect("no panic");
        reader.join().expect("no panic").expect("every line");
    }

    /// Takes what it is given, or fails.
    #[derive(Clone)]
    struct Output(Arc<Mutex<Result<Vec<u8>, io::ErrorKind>>>);

    impl Output {
        fn set(&self, result: Result<Vec<u8>, io::ErrorKind>) -> Result<Vec<u8>, io::ErrorKind> {
            std::mem::replace(&mut *self.0.lock().unwrap(), result)
        }
    }

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match &mut *self.0.lock().unwrap() {
                Ok(written) => written.write(bytes),
                Err(kind) => Err((*kind).into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_outage_is_reported_once_and_its_first_lines_are_written_after_it() {
        let output = Output(Arc::new(Mutex::new(Err(io::ErrorKind::StorageFull))));
        let (sender, reported) = std::sync::mpsc::channel();
        let report = move |error: &io::Error| sender.send(error.kind()).unwrap();
        let mut log = ServiceLog::start(output.clone(), 10, report).unwrap();
        for _ in 0..2 {
            for _ in 0..3 {
                log.write_all(&LINE[..CAPACITY / 2]).unwrap();
                log.flush_queue().await;
            }
            assert!(output.set(Ok(Vec::new())).is_err());
            log.flush_queue().await;
            let written = output.set(Err(io::ErrorKind::BrokenPipe));
            assert_eq!(written.unwrap().len(), CAPACITY);
        }
        assert_eq!(
            reported.try_iter().collect::<Vec<_>>(),
            [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe]
        );
        assert_eq!(log.dropped_lines().get(), 0);
    }

    #[tokio::test]
    async fn the_end_of_the_log_has_the_number_of_dropped_lines_if_there_are_any() {
        for (dropped, expected) in [(0, 0), (3, 1)] {
            let output = Output(Arc::new(Mutex::new(Ok(Vec::new()))));
            let log = ServiceLog::start(output.clone(), 10, |error| panic!("{error}")).unwrap();
            log.dropped_lines().inc_by(dropped);
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
            let _guard = tracing::subscriber::set_default(subscriber.with_ansi(false).finish());
            log.finish().await;
            let written = String::from_utf8(output.set(Ok(Vec::new())).unwrap()).unwrap();
            assert_eq!(written.lines().count(), expected, "{written}");
            assert_eq!(written.matches("dropped=3").count(), expected, "{written}");
        }
    }

    #[tokio::test]
    async fn a_pause_follows_each_write() {
        let output = Output(Arc::new(Mutex::new(Ok(Vec::new()))));
        let mut log = ServiceLog::start(output.clone(), 10, |error| panic!("{error}")).unwrap();
        let start = Instant::now();
        log.write_all(b"line\n").unwrap();
        log.flush_queue().await;
        assert!(start.elapsed() >= PAUSE);
        assert_eq!(output.set(Ok(Vec::new())).unwrap(), b"line\n");
    }
}
