use std::{
    io::{self, Write},
    mem::ManuallyDrop,
    time::Duration,
};

use tokio::{sync::watch, time::sleep};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

use super::batched_writer::BatchedWriter;

/// Interval at which a full queue is tried again.
const ROOM_INTERVAL: Duration = Duration::from_millis(10);

/// The log of a process that serves. A thread writes its lines until the process ends.
pub(crate) struct ServiceLog {
    queue: NonBlocking,
    dropped: ErrorCounter,
    /// Number of marks that were put into the queue, and of those that the thread has reached and written up to.
    marks: usize,
    written: watch::Receiver<usize>,
    /// Never dropped: with a full queue, that would block for ever on a standard output that is not read.
    _guard: ManuallyDrop<WorkerGuard>,
}

impl ServiceLog {
    /// Starts the thread. The returned writer never blocks. `report` is called with the first error of each outage.
    pub(super) fn start(
        inner: impl Write + Send + 'static,
        queue_lines: usize,
        report: impl FnMut(&io::Error) + Send + 'static,
    ) -> (Self, NonBlocking) {
        let (sender, written) = watch::channel(0);
        let writer = BatchedWriter::new(inner, report, sender);
        let (queue, guard) = NonBlockingBuilder::default().buffered_lines_limit(queue_lines).finish(writer);
        let (dropped, guard) = (queue.error_counter(), ManuallyDrop::new(guard));
        (Self { queue: queue.clone(), dropped, marks: 0, written, _guard: guard }, queue)
    }

    /// Logs the number of dropped lines, and resolves when the queued lines are written. It can be cancelled.
    pub(crate) async fn finish(mut self) {
        let refused = self.mark().await;
        let dropped = self.dropped.dropped_lines() - refused;
        if dropped > 0 {
            tracing::warn!(dropped, "log lines were dropped because their reader was too slow");
            self.mark().await;
        }
        // Fails if the thread panicked: nothing more is written.
        let _ = self.written.wait_for(|&written| written == self.marks).await;
    }

    /// Puts a mark, which is an empty line, into the queue when it has room. Returns the number of refused attempts.
    async fn mark(&mut self) -> usize {
        self.marks += 1;
        let mut refused = 0;
        loop {
            let before = self.dropped.dropped_lines();
            if self.queue.write_all(b"").is_ok() && self.dropped.dropped_lines() == before {
                return refused;
            }
            refused += 1;
            sleep(ROOM_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{PipeReader, Read, pipe},
        thread,
        time::Instant,
    };

    use tokio::time::timeout;

    use super::*;

    /// More than a pipe holds.
    static LINE: [u8; 128 * 1024] = [b'x'; 128 * 1024];

    /// A log whose queue is full, its reader, and the number of queued lines.
    fn full_log() -> (ServiceLog, PipeReader, usize) {
        let (reader, writer) = pipe().expect("a pipe");
        let (log, mut queue) = ServiceLog::start(writer, 2, |error| panic!("{error}"));
        let mut lines = 0;
        let start = Instant::now();
        // The thread takes one line or none, and blocks.
        while lines < 3 && start.elapsed() < Duration::from_secs(1) {
            let before = log.dropped.dropped_lines();
            queue.write_all(&LINE).expect("a queue never fails");
            lines += usize::from(log.dropped.dropped_lines() == before);
        }
        (log, reader, lines)
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_does_not_block_the_caller() {
        let (log, _reader, _) = full_log();
        let start = Instant::now();
        assert!(timeout(Duration::from_millis(50), log.finish()).await.is_err());
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn every_queued_line_is_written_however_late_the_reader_reads() {
        let (log, mut reader, lines) = full_log();
        let end = tokio::spawn(log.finish());
        // Longer than the guard of the library would wait.
        sleep(Duration::from_millis(1200)).await;
        assert!(!end.is_finished());
        let mut bytes = vec![0; lines * LINE.len()];
        let reader = thread::spawn(move || reader.read_exact(&mut bytes));
        timeout(Duration::from_secs(10), end).await.expect("it ends").expect("no panic");
        reader.join().expect("no panic").expect("every line");
    }
}
