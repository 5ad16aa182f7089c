//! The terminal of the process.
//!
//! A terminal is lost if it has hung up, or if the leader of its session has ended. In the second case, a
//! pseudo-terminal does not hang up, but it controls the process no longer, and no key reaches the process.

use std::{
    io::IsTerminal,
    os::fd::{AsFd, OwnedFd},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::tcgetsid,
};

/// A terminal, open as a file.
pub(super) struct Terminal {
    file: OwnedFd,
    /// Whether it controlled the process at first.
    controlled: bool,
}

impl Terminal {
    /// `None`: the file is no terminal, or one that has hung up already.
    pub(super) fn of(file: OwnedFd) -> Option<Self> {
        let controlled = tcgetsid(&file).is_ok();
        file.is_terminal().then_some(Self { file, controlled })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.has_hung_up() || (self.controlled && tcgetsid(&self.file).is_err())
    }

    fn has_hung_up(&self) -> bool {
        let mut polled = [PollFd::new(self.file.as_fd(), PollFlags::empty())];
        poll(&mut polled, PollTimeout::ZERO).is_ok()
            && polled[0]
                .revents()
                .is_some_and(|events| events.contains(PollFlags::POLLHUP))
    }
}
