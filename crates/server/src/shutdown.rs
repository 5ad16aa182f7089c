//! The signals that end the process.
//!
//! The first SIGTERM or SIGINT starts a graceful shutdown, or ends the start. A second one ends the shutdown at once,
//! unless it arrives within a second of the first: `timeout` and some supervisors send a signal twice. From
//! [`Signals::listen`] on, neither kills the process. A server handles SIGHUP as well: as a signal if its [`terminal`]
//! is lost, as a reload otherwise. A command that moves pets ends at SIGHUP.

mod terminal;

use std::{io, os::fd::AsFd, sync::Arc, time::Duration};

use procfs::process::Process;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Notify, SetOnce},
    time::{Instant, sleep},
};

use self::terminal::Terminal;

/// A second signal that arrives sooner after the first is ignored.
const SECOND_SIGNAL_DELAY: Duration = Duration::from_secs(1);

/// A terminal that hangs up, or a leader of the session that ends, can send SIGHUP before the terminal is lost. So the
/// terminal is looked at this many times.
const LOOKS: u32 = 50;

/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

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

    /// Receives SIGHUP from now on: a shutdown if the terminal is lost, a reload otherwise.
    pub(crate) fn listen_for_reloads(&self) -> io::Result<()> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let terminal = Terminal::of(stdin).map(Arc::new);
        self.on(SignalKind::hangup(), move |signals| {
            if terminal.as_ref().is_none_or(|terminal| !terminal.is_lost()) {
                signals.0.reload.notify_one();
            }
            if let Some(terminal) = &terminal {
                tokio::spawn(signals.clone().shut_down_if_lost(Arc::clone(terminal)));
            }
        })
    }

    /// Receives SIGHUP from now on, as a signal that ends the process. It stays ignored if it was, as by `nohup`.
    pub(crate) fn listen_for_hangups(&self) -> io::Result<()> {
        if is_hangup_ignored() {
            return Ok(());
        }
        self.on(SignalKind::hangup(), |signals| {
            signals.request_shutdown(false);
        })
    }

    /// Requests a shutdown if the terminal is lost soon.
    async fn shut_down_if_lost(self, terminal: Arc<Terminal>) {
        for _ in 0..LOOKS {
            if terminal.is_lost() {
                // A second SIGHUP is no wish to end at once.
                if self.request().is_none() {
                    self.request_shutdown(false);
                }
                return;
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    fn on(&self, kind: SignalKind, handle: impl Fn(&Self) + Send + 'static) -> io::Result<()> {
        let signals = self.clone();
        let mut received = signal(kind)?;
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
        let request = ShutdownRequest { arrived_at, drain };
        if self.0.first.set(request).is_ok() {
            return;
        }
        let is_ignored = self
            .request()
            .is_none_or(|first| arrived_at - first.arrived_at < SECOND_SIGNAL_DELAY);
        if is_ignored {
            tracing::debug!("a second signal was ignored: it arrived within a second of the first");
        } else {
            self.end_shutdown();
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

fn is_hangup_ignored() -> bool {
    let status = Process::myself().and_then(|process| process.status());
    // Bit 0 is signal 1, SIGHUP.
    status.is_ok_and(|status| status.sigign & 1 == 1)
}

#[cfg(test)]
mod tests {
    use nix::pty::openpty;
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

    #[tokio::test(start_paused = true)]
    async fn a_terminal_that_hangs_up_soon_after_sighup_ends_the_process_and_one_that_stays_does_not()
     {
        let pair = openpty(None, None).unwrap();
        let terminal = Arc::new(Terminal::of(pair.slave).unwrap());
        let signals = Signals::default();
        let look = || signals.clone().shut_down_if_lost(Arc::clone(&terminal));
        let start = Instant::now();
        look().await;
        assert_eq!(signals.request(), None);
        assert_eq!(start.elapsed(), LOOKS * LOOK_PAUSE);

        let looks = tokio::spawn(look());
        advance(LOOKS / 2 * LOOK_PAUSE).await;
        drop(pair.master);
        looks.await.unwrap();
        let request = signals.request().unwrap();
        assert!(!request.drain);

        advance(2 * SECOND_SIGNAL_DELAY).await;
        look().await;
        assert_eq!(signals.0.second.get(), None);
    }
}
