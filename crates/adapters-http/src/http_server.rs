//! A running server and the handle that stops it.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_server::{Server, ServerHandle};
use tokio::{
    select,
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use crate::{
    metrics::HttpMetrics,
    transport::{
        acceptor::Acceptor,
        connections::Stage,
        listener::{ACCEPT_TIME, HttpListener},
    },
    worker_progress::WorkerProgress,
};

/// Timeout for connections that were accepted and have not reached their worker.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// A server. Its listener accepts connections as soon as the server is created.
pub struct HttpServer {
    /// Receives a message when a worker ends.
    pub(crate) ended: mpsc::UnboundedReceiver<()>,
    pub(crate) server: Server,
    pub(crate) listener: SharedListener,
    pub(crate) acceptor: Acceptor,
    pub(crate) is_draining: Arc<AtomicBool>,
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) progress: WorkerProgress,
    pub(crate) metrics: Arc<HttpMetrics>,
}

/// Stops an [`HttpServer`].
pub struct HttpServerHandle {
    server: ServerHandle,
    listener: SharedListener,
    acceptor: Acceptor,
    is_draining: Arc<AtomicBool>,
    stage: watch::Sender<Stage>,
    progress: WorkerProgress,
    metrics: Arc<HttpMetrics>,
}

/// Reports the end of a worker, however it ends.
pub(crate) struct WorkerEnd(pub(crate) mpsc::UnboundedSender<()>);

impl Drop for WorkerEnd {
    fn drop(&mut self) {
        // Fails if the server has stopped.
        let _ = self.0.send(());
    }
}

/// The listener until the server stops: the kernel accepts connections until its last handle is closed.
pub(crate) type SharedListener = Arc<Mutex<Option<HttpListener>>>;

impl HttpServer {
    /// Returns a handle that stops the server.
    pub fn handle(&self) -> HttpServerHandle {
        HttpServerHandle {
            server: self.server.handle(),
            listener: Arc::clone(&self.listener),
            acceptor: self.acceptor,
            is_draining: Arc::clone(&self.is_draining),
            stage: self.stage.clone(),
            progress: self.progress.clone(),
            metrics: Arc::clone(&self.metrics),
        }
    }

    /// Serves until the server is stopped.
    ///
    /// # Errors
    /// If the server fails, or one of its workers ends before it is stopped. actix would notice that only at a later
    /// connection.
    pub async fn run(mut self) -> io::Result<()> {
        loop {
            select! {
                biased;
                result = &mut self.server => return result,
                Some(()) = self.ended.recv() => {
                    if *self.stage.borrow() == Stage::Serving {
                        return Err(io::Error::other("a worker thread has ended"));
                    }
                }
            }
        }
    }
}

impl HttpServerHandle {
    /// From now on, every response says `Connection: close`.
    pub fn announce_close(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Stops accepting, and resolves when every connection is closed. A connection is closed after its response, which
    /// says `Connection: close`, or once it was idle for `idle_grace`.
    pub async fn stop(&self, idle_grace: Duration) {
        self.announce_close();
        self.stage.send_replace(Stage::Stopping { idle_grace });
        let listener = self.listener.lock().ok().and_then(|mut listener| listener.take());
        if let Some(listener) = listener {
            if let Err(error) = listener.end() {
                tracing::debug!(%error, "connections that are being opened may be reset");
            }
            if listener.is_inherited() {
                // Connections go on arriving: this process must accept none of them that it cannot serve.
                let sets = self.acceptor.sets();
                self.server.pause().await;
                sets.left().await;
            }
            drop(listener);
            if timeout(DELIVERY_TIMEOUT, self.deliver_accepted()).await.is_err() {
                tracing::debug!("connections go on arriving: those that are accepted now may be reset");
            }
        }
        self.server.stop(true).await;
    }

    /// Waits until the workers have taken every connection that was accepted: when they stop, they close the others.
    async fn deliver_accepted(&self) {
        let mut before = None;
        while before != Some(self.metrics.connections_accepted.get()) {
            before = Some(self.metrics.connections_accepted.get());
            sleep(ACCEPT_TIME).await;
            self.progress.executed().await;
        }
    }

    /// Closes every connection at once.
    pub async fn abort(&self) {
        self.stage.send_replace(Stage::Aborting);
        self.server.stop(false).await;
    }
}
