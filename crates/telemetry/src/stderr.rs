//! Standard error can be a pipe that is full and not read. A message there must not keep the process from its end.

use std::{io, os::fd::AsFd};

use nix::{
    poll::{PollFd, PollFlags, poll},
    unistd::write,
};

/// Time to read what was written before, in milliseconds.
const TIMEOUT: u16 = 500;

/// Number of bytes that a pipe takes at once if it can be written.
const PIPE_BUF: usize = 4096;

/// Writes a line that begins with the name of the program. What cannot be written within half a second is lost. A
/// thread that is blocked in a write holds the lock of [`io::stderr`], so the lock is not taken.
pub fn write_line(message: &str) {
    let stderr = io::stderr();
    for part in format!("animal-store: {message}\n")
        .as_bytes()
        .chunks(PIPE_BUF)
    {
        let has_room = poll(
            &mut [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)],
            TIMEOUT,
        ) == Ok(1);
        // If standard error is closed, only the exit code is left.
        if !has_room || write(&stderr, part).is_err() {
            return;
        }
    }
}
