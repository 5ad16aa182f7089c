//! Shutdown signals, and the probe that makes `/ready` fail from the first signal on.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use animal_store_app::ports::{NotReady, Readiness};
use async_trait::async_trait;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Counts SIGTERM and SIGINT. The first one starts a graceful shutdown, the second one ends the process at once.
pub(crate) struct Signals(watch::Receiver<u32>);

impl Signals {
    /// Installs the signal handlers on the current runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = watch::channel(0);
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                sender.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(receiver))
    }

    /// Waits until this number of signals has arrived.
    pub(crate) async fn reach(&self, count: u32) {
        if self.0.clone().wait_for(|&current| current >= count).await.is_err() {
            // The runtime is shutting down, and this future with it.
            std::future::pending::<()>().await;
        }
    }
}

/// Readiness probe that fails after [`fail`](Self::fail).
#[derive(Debug, Default)]
pub(crate) struct ShutdownProbe(AtomicBool);

impl ShutdownProbe {
    pub(crate) fn fail(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl Readiness for ShutdownProbe {
    async fn check(&self) -> Result<(), NotReady> {
        if self.0.load(Ordering::Relaxed) { Err(NotReady("shutting down".into())) } else { Ok(()) }
    }
}
