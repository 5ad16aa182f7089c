use std::{
    io::{self, Write},
    mem::ManuallyDrop,
    thread,
    time::Duration,
};

use tokio::{sync::watch, time::sleep};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

use super::batched_writer::BatchedWriter;

/// Interval at which a full queue is tried again.
const ROOM_INTERVAL: Duration = Duration::from_millis(10);

/// The log of a process that serves. Its lines are written by a thread, which ends with [`finish`](Self::finish).
pub(crate) struct ServiceLog {
    queue: NonBlocking,
    dropped: ErrorCounter,
    /// Dropping it while the queue is full would block for as long as standard output does.
    guard: ManuallyDrop<WorkerGuard>,
    /// Closed when the thread has written everything.
    written: watch::Receiver<()>,
}

impl ServiceLog {
    /// Starts the thread. The returned writer never blocks. `report` is called with the first error of each outage.
    pub(super) fn start(
        inner: impl Write + Send + 'static,
        queue_lines: usize,
        report: impl FnMut(&io::Error) + Send + 'static,
    ) -> (Self, NonBlocking) {
        let (end, written) = watch::channel(());
        let writer = BatchedWriter::new(inner, report, end);
        let (queue, guard) = NonBlockingBuilder::default().buffered_lines_limit(queue_lines).finish(writer);
        let log =
            Self { queue: queue.clone(), dropped: queue.error_counter(), guard: ManuallyDrop::new(guard), written };
        (log, queue)
    }

    /// Logs the number of dropped lines, and resolves when the queued lines are written. It can be cancelled.
    pub(crate) async fn finish(mut self) {
        let mut attempts = 0;
        while !self.has_room() {
            attempts += 1;
            sleep(ROOM_INTERVAL).await;
        }
        let dropped = self.dropped.dropped_lines() - attempts;
        if dropped > 0 {
            tracing::warn!(dropped, "log lines were dropped because their reader was too slow");
        }
        // It waits for a second for the end of the thread, which may take longer.
        let guard = ManuallyDrop::into_inner(self.guard);
        thread::spawn(move || drop(guard));
        while self.written.changed().await.is_ok() {}
    }

    /// Returns whether the queue takes a line. The line is empty: it writes nothing.
    fn has_room(&mut self) -> bool {
        let before = self.dropped.dropped_lines();
        self.queue.write_all(b"").is_ok() && self.dropped.dropped_lines() == before
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, time::Instant};

    use tokio::time::timeout;

    use super::*;

    /// More than a pipe holds.
    const LINE: [u8; 128 * 1024] = [b'x'; 128 * 1024];

    /// A log of three lines into a pipe, with room for one line in its queue. One line is in the pipe.
    fn full_log() -> (ServiceLog, io::PipeReader, usize) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let (log, mut queue) = ServiceLog::start(writer, 1, |error| panic!("{error}"));
        let mut written = 0;
        // The thread takes a line from the queue and blocks. The next line stays in the queue.
        while log.dropped.dropped_lines() == 0 {
            queue.write_all(&LINE).expect("a queue never fails");
            written += 1;
        }
        (log, reader, written - 1)
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_does_not_block_the_caller() {
        let (log, _reader, _) = full_log();
        let start = Instant::now();
        assert!(timeout(Duration::from_millis(50), log.finish()).await.is_err());
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn everything_queued_is_written_however_late_its_reader_reads() {
        let (log, mut reader, written) = full_log();
        let end = tokio::spawn(log.finish());
        // Longer than the guard of the library waits.
        sleep(Duration::from_millis(1200)).await;
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes.len())
        });
        timeout(Duration::from_secs(10), end).await.expect("it ends").expect("no panic");
        // The pipe ends, because the thread has dropped its writer.
        assert_eq!(reader.join().expect("no panic").expect("a pipe"), written * LINE.len());
    }
}
