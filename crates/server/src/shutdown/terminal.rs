//! The terminal of the process.
//!
//! A terminal is lost if it has hung up, or if the leader of its session has ended. In the second case, a
//! pseudo-terminal does not hang up, but it controls the process no longer, and no key reaches the process.

use std::{io::IsTerminal, os::fd::OwnedFd};

use nix::sys::termios::tcgetsid;

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

    /// A terminal that has hung up answers no request of a terminal any more.
    pub(super) fn is_lost(&self) -> bool {
        !self.file.is_terminal() || (self.controlled && tcgetsid(&self.file).is_err())
    }
}
