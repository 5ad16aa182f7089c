//! Standard error can be a pipe that is full and not read. A message there must not keep the process from its end.

use std::{
    io,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::write,
};

/// Time to read what was written before, in milliseconds.
const TIMEOUT: u16 = 500;

/// Number of bytes that a pipe takes at once if it can be written.
const PIPE_BUF: usize = 4096;

/// Whether the last write had no room. Until there is some, lines are lost without a wait.
static IS_BLOCKED: AtomicBool = AtomicBool::new(false);

/// Writes a line that begins with the name of the program. What cannot be written within half a second is lost. A thread
/// that is blocked in a write holds the lock of [`io::stderr`], so the lock is not taken.
pub(crate) fn write_line(message: &str) {
    let stderr = io::stderr();
    for part in format!("animal-store: {message}\n").as_bytes().chunks(PIPE_BUF) {
        let timeout = if IS_BLOCKED.load(Ordering::Relaxed) { PollTimeout::ZERO } else { TIMEOUT.into() };
        let has_room = poll(&mut [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)], timeout) == Ok(1);
        IS_BLOCKED.store(!has_room, Ordering::Relaxed);
        // If standard error is closed, only the exit code is left.
        if !has_room || write(&stderr, part).is_err() {
            return;
        }
    }
}
