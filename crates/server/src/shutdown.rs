//! The signals that end the process.
//!
//! The first SIGTERM or SIGINT starts a graceful shutdown, or ends the start. A second one ends the shutdown at once,
//! unless it arrives within a second of the first: `timeout` and some supervisors send a signal twice. From
//! [`Signals::listen`] on, neither kills the process. A server handles SIGHUP as well: as a signal if its terminal has
//! gone, as a reload otherwise.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Notify, SetOnce},
    time::Instant,
};

/// A second signal that arrives sooner after the first is ignored.
const SECOND_SIGNAL_DELAY: Duration = Duration::from_secs(1);

/// The request to shut down gracefully.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownRequest {
    /// Start of `shutdown.timeout`.
    pub arrived_at: Instant,
    /// Whether connections are still accepted for `shutdown.drain_delay`.
    pub drain: bool,
}

/// The signals that have arrived, without those that are ignored.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    first: Arc<SetOnce<ShutdownRequest>>,
    second: Arc<SetOnce<()>>,
}

impl Signals {
    /// Receives SIGTERM and SIGINT from now on, on the current runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let signals = Self::default();
        let received = signals.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => received.add(true),
                    _ = interrupt.recv() => received.add(false),
                }
            }
        });
        Ok(signals)
    }

    /// Receives SIGHUP from now on: a shutdown if the terminal has gone. Otherwise, it notifies what is returned.
    pub(crate) fn listen_for_reloads(&self) -> io::Result<Arc<Notify>> {
        let mut hang_up = signal(SignalKind::hangup())?;
        // A terminal that has hung up is no terminal any more.
        let on_terminal = io::stdin().is_terminal();
        let (signals, reload) = (self.clone(), Arc::new(Notify::new()));
        let requested = Arc::clone(&reload);
        tokio::spawn(async move {
            while hang_up.recv().await.is_some() {
                if on_terminal && has_hung_up(&io::stdin()) {
                    signals.add(false);
                } else {
                    requested.notify_one();
                }
            }
        });
        Ok(reload)
    }

    fn add(&self, drain: bool) {
        let arrived_at = Instant::now();
        match self.request() {
            None => _ = self.first.set(ShutdownRequest { arrived_at, drain }),
            Some(first) if arrived_at - first.arrived_at < SECOND_SIGNAL_DELAY => {
                tracing::debug!("a second signal was ignored: it arrived within a second of the first");
            }
            Some(_) => _ = self.second.set(()),
        }
    }

    /// Returns the request of the first signal, if it has arrived.
    pub(crate) fn request(&self) -> Option<ShutdownRequest> {
        self.first.get().copied()
    }

    /// Waits for the first signal.
    pub(crate) async fn first(&self) -> ShutdownRequest {
        *self.first.wait().await
    }

    /// Waits for the second signal.
    pub(crate) async fn second(&self) {
        self.second.wait().await;
    }
}

fn has_hung_up(terminal: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(terminal.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO).is_ok()
        && polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_counts_from_one_second_after_the_first() {
        let signals = Signals::default();
        let arrived_at = Instant::now();
        for (milliseconds, is_counted) in [(0, false), (1, false), (998, false), (1, true)] {
            advance(Duration::from_millis(milliseconds)).await;
            signals.add(milliseconds == 0);
            assert_eq!(signals.second.get().is_some(), is_counted);
            assert_eq!(signals.first().await, ShutdownRequest { arrived_at, drain: true });
        }
        assert_eq!(signals.request(), Some(signals.first().await));
    }
}
