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
pub(crate) struct ShutdownRequest {
    /// Start of `shutdown.timeout`.
    pub(crate) arrived_at: Instant,
    /// Whether connections are still accepted for `shutdown.drain_delay`.
    pub(crate) drain: bool,
}

/// The signals that have arrived, without those that are ignored. Clones share them.
#[derive(Clone, Default)]
pub struct Signals(Arc<Arrived>);

#[derive(Default)]
struct Arrived {
    first: SetOnce<ShutdownRequest>,
    second: SetOnce<()>,
    reload: Notify,
}

impl Signals {
    /// Receives SIGTERM and SIGINT from now on, on the current runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        signals.on(SignalKind::terminate(), |signals| {
            signals.request_shutdown(true);
        })?;
        signals.on(SignalKind::interrupt(), |signals| {
            signals.request_shutdown(false);
        })?;
        Ok(signals)
    }

    /// Receives SIGHUP from now on: a shutdown if the terminal has gone, a reload otherwise.
    pub(crate) fn listen_for_reloads(&self) -> io::Result<()> {
        // A terminal that has hung up is no terminal any more.
        let on_terminal = io::stdin().is_terminal();
        self.on(SignalKind::hangup(), move |signals| {
            if on_terminal && has_hung_up(&io::stdin()) {
                signals.request_shutdown(false);
            } else {
                signals.0.reload.notify_one();
            }
        })
    }

    fn on(&self, kind: SignalKind, handle: impl Fn(&Self) + Send + 'static) -> io::Result<()> {
        let (signals, mut received) = (self.clone(), signal(kind)?);
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                handle(&signals);
            }
        });
        Ok(())
    }

    /// Adds a signal. `drain` says whether the first one leaves time for the drain delay.
    pub fn request_shutdown(&self, drain: bool) {
        let arrived_at = Instant::now();
        match self.request() {
            None => _ = self.0.first.set(ShutdownRequest { arrived_at, drain }),
            Some(first) if arrived_at - first.arrived_at < SECOND_SIGNAL_DELAY => {
                tracing::debug!(
                    "a second signal was ignored: it arrived within a second of the first"
                );
            }
            Some(_) => self.end_shutdown(),
        }
    }

    /// Ends the shutdown at once, as the second signal does.
    pub fn end_shutdown(&self) {
        // Fails if it has ended already.
        let _ = self.0.second.set(());
    }

    /// Returns the request of the first signal, if it has arrived.
    pub(crate) fn request(&self) -> Option<ShutdownRequest> {
        self.0.first.get().copied()
    }

    /// Waits for the first signal.
    pub(crate) async fn first(&self) -> ShutdownRequest {
        *self.0.first.wait().await
    }

    /// Waits for the second signal.
    pub(crate) async fn second(&self) {
        self.0.second.wait().await;
    }

    /// Waits for a request to reload. Requests that arrive meanwhile are one.
    pub(crate) async fn reload(&self) {
        self.0.reload.notified().await;
    }
}

fn has_hung_up(terminal: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(terminal.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO).is_ok()
        && polled[0]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLHUP))
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
            signals.request_shutdown(milliseconds == 0);
            assert_eq!(signals.0.second.get().is_some(), is_counted);
            assert_eq!(
                signals.first().await,
                ShutdownRequest {
                    arrived_at,
                    drain: true
                }
            );
        }
        assert_eq!(signals.request(), Some(signals.first().await));
    }
}
