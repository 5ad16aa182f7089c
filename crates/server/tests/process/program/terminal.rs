use std::os::fd::OwnedFd;

use nix::pty::openpty;

/// Returns both sides of a new terminal: the one that shows it, and the one of programs. No other process inherits
/// them.
pub(crate) fn terminal() -> (OwnedFd, OwnedFd) {
    let pair = openpty(None, None).expect("a terminal");
    // Duplicates are closed in processes that are started.
    (pair.master.try_clone().expect("a duplicate"), pair.slave.try_clone().expect("a duplicate"))
}
