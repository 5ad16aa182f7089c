//! Standard error can be a pipe that is full and not read. A message there must not keep the process from its end.

use std::{
    io::{self, Write},
    sync::mpsc,
    thread,
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_millis(500);

/// Writes a line that begins with the name of the program. If it cannot be written within half a second, it is lost.
pub(crate) fn write_line(message: &str) {
    let line = format!("animal-store: {message}\n");
    // If standard error is closed, only the exit code is left.
    let write = |line: &str| io::stderr().write_all(line.as_bytes()).unwrap_or_default();
    let (end, written) = mpsc::channel::<()>();
    let copy = line.clone();
    let writer = thread::Builder::new().spawn(move || {
        write(&copy);
        drop(end);
    });
    if writer.is_ok() {
        // The end of the writer disconnects the channel.
        let _ = written.recv_timeout(TIMEOUT);
    } else {
        // Without a thread, a write that can block is better than no message.
        write(&line);
    }
}
