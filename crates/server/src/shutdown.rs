//! How the process is told to end, and what it answers to `/ready` from then on.

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

/// SIGTERM and SIGINT. The first asks for an orderly end, the second for an immediate one.
pub(crate) struct Signals(watch::Receiver<u32>);

impl Signals {
    /// From here on, the signals are ours.
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

    /// Waits for the first.
    pub(crate) async fn first(&self) {
        self.count_is(1).await;
    }

    /// Waits for the second.
    pub(crate) async fn second(&self) {
        self.count_is(2).await;
    }

    async fn count_is(&self, least: u32) {
        let ended = self.0.clone().wait_for(|&count| count >= least).await.is_err();
        if ended {
            // The runtime is ending, and whoever waits here with it.
            std::future::pending::<()>().await;
        }
    }
}

/// Not ready any more, once the process was told to end.
#[derive(Debug, Default)]
pub(crate) struct Draining(AtomicBool);

impl Draining {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl Readiness for Draining {
    async fn check(&self) -> Result<(), NotReady> {
        if self.0.load(Ordering::Relaxed) { Err(NotReady("shutting down".into())) } else { Ok(()) }
    }
}
