use std::{
    io::{self, Write},
    iter,
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

use prometheus_client::metrics::counter::Counter;
use tokio::task::spawn_blocking;

use super::batched_writer::BatchedWriter;

/// The log of a process that serves. A thread writes its lines until the process ends.
pub(crate) struct ServiceLog(QueueWriter);

/// Puts each line into the queue, and never blocks. A line for which the queue has no room is dropped and counted.
#[derive(Clone)]
pub(super) struct QueueWriter {
    queue: SyncSender<Entry>,
    dropped: Counter,
}

enum Entry {
    Line(Vec<u8>),
    /// Dropped when all lines before it are written.
    Flush {
        _sender: Sender<()>,
    },
}

impl ServiceLog {
    /// Starts the thread. `report` is called with the first error of each outage.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        inner: impl Write + Send + 'static,
        queue_lines: usize,
        report: impl FnMut(&io::Error) + Send + 'static,
    ) -> io::Result<(Self, QueueWriter)> {
        let (queue, entries) = sync_channel(queue_lines);
        let writer = BatchedWriter::new(inner, report);
        thread::Builder::new().name("log".to_owned()).spawn(move || write(&entries, writer))?;
        let writer = QueueWriter { queue, dropped: Counter::default() };
        Ok((Self(writer.clone()), writer))
    }

    /// Returns the counter of the lines that were dropped.
    pub(crate) fn dropped_lines(&self) -> Counter {
        self.0.dropped.clone()
    }

    /// Logs the number of dropped lines, and resolves when the queued lines are written. It can be cancelled: the
    /// thread that waits is left behind.
    pub(crate) async fn finish(self) {
        let flushed = spawn_blocking(move || {
            self.0.flush_queue();
            let dropped = self.0.dropped.get();
            if dropped > 0 {
                tracing::warn!(dropped, "log lines were dropped because their reader was too slow");
                self.0.flush_queue();
            }
        });
        // Fails if the runtime is shutting down.
        let _ = flushed.await;
    }
}

impl QueueWriter {
    /// Waits for room in the queue, and then until its lines are written, or until the thread has panicked.
    fn flush_queue(&self) {
        let (sender, flushed) = channel();
        let _ = self.queue.send(Entry::Flush { _sender: sender });
        let _ = flushed.recv();
    }
}

impl Write for QueueWriter {
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

/// Writes all queued lines at once, again and again.
fn write<W: Write, R: FnMut(&io::Error)>(entries: &Receiver<Entry>, mut writer: BatchedWriter<W, R>) {
    while let Ok(first) = entries.recv() {
        let mut flushes = Vec::new();
        for entry in iter::once(first).chain(entries.try_iter()) {
            match entry {
                Entry::Line(line) => writer.add(&line),
                flush @ Entry::Flush { .. } => flushes.push(flush),
            }
        }
        writer.flush_and_pause();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{PipeReader, Read, pipe},
        time::{Duration, Instant},
    };

    use tokio::time::{sleep, timeout};

    use super::*;

    /// More than a pipe holds.
    static LINE: [u8; 128 * 1024] = [b'x'; 128 * 1024];

    /// A log whose queue is full, its reader, and the number of queued lines.
    fn full_log() -> (ServiceLog, PipeReader, usize) {
        let (reader, writer) = pipe().expect("a pipe");
        let (log, mut queue) = ServiceLog::start(writer, 2, |error| panic!("{error}")).expect("a thread");
        let mut lines = 0;
        let start = Instant::now();
        // The thread takes one line, and blocks.
        while lines < 3 {
            assert!(start.elapsed() < Duration::from_secs(20), "the thread takes no line");
            let before = queue.dropped.get();
            queue.write_all(&LINE).expect("a queue never fails");
            lines += usize::from(queue.dropped.get() == before);
        }
        (log, reader, lines)
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_does_not_block_the_caller() {
        let (log, _reader, _) = full_log();
        let start = Instant::now();
        assert!(timeout(Duration::from_millis(50), log.finish()).await.is_err());
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }

    #[test]
    fn a_line_without_room_in_the_queue_is_counted() {
        let (mut log, _reader, _) = full_log();
        let before = log.dropped_lines().get();
        log.0.write_all(&LINE).expect("a queue never fails");
        assert_eq!(log.dropped_lines().get(), before + 1);
    }

    #[tokio::test]
    async fn every_queued_line_is_written_however_late_the_reader_reads() {
        let (log, mut reader, lines) = full_log();
        let end = tokio::spawn(log.finish());
        sleep(Duration::from_millis(100)).await;
        assert!(!end.is_finished());
        let mut bytes = vec![0; lines * LINE.len()];
        let reader = thread::spawn(move || reader.read_exact(&mut bytes));
        timeout(Duration::from_secs(10), end).await.expect("it ends").expect("no panic");
        reader.join().expect("no panic").expect("every line");
    }
}
