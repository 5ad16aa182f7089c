//! Standard error can be a pipe that is full and not read. A message there must not keep the process from its end.

use std::{
    io::{self, Write},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel},
    },
    thread,
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_millis(500);

/// Disconnected at the end of a write that took longer than the timeout. Until then, lines are lost without a wait.
static BLOCKED: Mutex<Option<Receiver<()>>> = Mutex::new(None);

/// Writes a line that begins with the name of the program. If it cannot be written within half a second, it is lost.
pub(crate) fn write_line(message: &str) {
    let mut blocked = BLOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    if blocked.as_ref().is_some_and(|write| write.try_recv() != Err(TryRecvError::Disconnected)) {
        return;
    }
    let line = format!("animal-store: {message}\n");
    // If standard error is closed, only the exit code is left.
    let write = |line: &str| io::stderr().write_all(line.as_bytes()).unwrap_or_default();
    let (end, written) = channel::<()>();
    let copy = line.clone();
    let writer = thread::Builder::new().spawn(move || {
        write(&copy);
        drop(end);
    });
    if writer.is_err() {
        // Without a thread, a write that can block is better than no message.
        write(&line);
    }
    let is_blocked = written.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout);
    *blocked = is_blocked.then_some(written);
}
