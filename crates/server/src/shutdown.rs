//! The signals that end the process.
//!
//! The first SIGTERM or SIGINT starts a graceful shutdown, or ends the start. A second one ends the shutdown at once,
//! unless it arrives within a second of the first: `timeout` and some supervisors send a signal twice. From
//! [`Signals::listen`] on, none of these signals kills the process. For a server, SIGHUP is the first signal if its
//! terminal has gone, and a reload otherwise.

use std::{
    future::pending,
    io::{self, IsTerminal},
    os::fd::AsFd,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
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

/// The signals that have arrived.
#[derive(Debug, Default, PartialEq, Eq)]
struct SignalState {
    first: Option<ShutdownRequest>,
    second: bool,
}

impl SignalState {
    fn add(&mut self, signal: ShutdownRequest) {
        match self.first {
            None => self.first = Some(signal),
            Some(first) if signal.arrived_at - first.arrived_at >= SECOND_SIGNAL_DELAY => self.second = true,
            Some(_) => tracing::debug!("a second signal was ignored: it arrived within a second of the first"),
        }
    }
}

/// Receives SIGTERM and SIGINT.
#[derive(Clone)]
pub(crate) struct Signals(watch::Sender<SignalState>);

impl Signals {
    /// Installs the signal handlers on the current runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let signals = Self(watch::Sender::new(SignalState::default()));
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

    fn add(&self, drain: bool) {
        self.0.send_modify(|state| state.add(ShutdownRequest { arrived_at: Instant::now(), drain }));
    }

    /// Returns the request of the first signal, if it has arrived.
    pub(crate) fn request(&self) -> Option<ShutdownRequest> {
        self.0.borrow().first
    }

    /// Waits for the first signal.
    pub(crate) async fn first(&self) -> ShutdownRequest {
        self.wait_for(|state| state.first).await
    }

    /// Waits for the second signal.
    pub(crate) async fn second(&self) {
        self.wait_for(|state| state.second.then_some(())).await;
    }

    async fn wait_for<T>(&self, choose: impl Fn(&SignalState) -> Option<T>) -> T {
        let mut receiver = self.0.subscribe();
        let state = receiver.wait_for(|state| choose(state).is_some()).await.expect("the sender is in self");
        choose(&state).expect("as the condition")
    }
}

/// Receives SIGHUP.
pub(crate) struct HangUps {
    signal: Signal,
    /// Whether the process was started on a terminal. One that has hung up is no terminal any more.
    on_terminal: bool,
    shutdown: Signals,
}

impl HangUps {
    /// Installs the signal handler on the current runtime.
    pub(crate) fn listen(shutdown: Signals) -> io::Result<Self> {
        let on_terminal = io::stdin().is_terminal();
        Ok(Self { signal: signal(SignalKind::hangup())?, on_terminal, shutdown })
    }

    /// Waits for a SIGHUP that asks for a reload. If the terminal has gone, the process shuts down.
    pub(crate) async fn next(&mut self) {
        while self.signal.recv().await.is_some() {
            if !(self.on_terminal && has_hung_up(&io::stdin())) {
                return;
            }
            self.shutdown.add(false);
        }
        // The runtime is shutting down, and this future with it.
        pending::<()>().await;
    }
}

fn has_hung_up(terminal: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(terminal.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO).is_ok()
        && polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_counts_from_one_second_after_the_first() {
        let start = Instant::now();
        let at = |milliseconds| ShutdownRequest {
            arrived_at: start + Duration::from_millis(milliseconds),
            drain: milliseconds == 0,
        };
        let mut state = SignalState::default();
        for milliseconds in [0, 1, 999] {
            state.add(at(milliseconds));
            assert_eq!(state, SignalState { first: Some(at(0)), second: false });
        }
        state.add(at(1000));
        assert_eq!(state, SignalState { first: Some(at(0)), second: true });
    }
}
