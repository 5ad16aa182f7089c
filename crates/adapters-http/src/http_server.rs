//! A running server and the handle that stops it.

use std::{io, time::Duration};

use tokio::sync::{mpsc, watch};

use crate::transport::connection::Stage;

/// A server. It accepts connections as soon as it is created.
pub struct HttpServer {
    /// Receives a message when a worker ends.
    pub(crate) ended: mpsc::UnboundedReceiver<()>,
    pub(crate) handle: HttpServerHandle,
}

/// Stops an [`HttpServer`].
#[derive(Clone)]
pub struct HttpServerHandle {
    /// The acceptor and each worker have a receiver until they end.
    pub(crate) stage: watch::Sender<Stage>,
}

/// Reports the end of a worker, however it ends.
pub(crate) struct WorkerEnd(pub(crate) mpsc::UnboundedSender<()>);

impl Drop for WorkerEnd {
    fn drop(&mut self) {
        // Fails if the server has stopped.
        let _ = self.0.send(());
    }
}

impl HttpServer {
    /// Returns a handle that stops the server.
    pub fn handle(&self) -> HttpServerHandle {
        self.handle.clone()
    }

    /// Serves until the server is stopped.
    ///
    /// # Errors
    /// If a worker ends before the server is stopped.
    pub async fn run(mut self) -> io::Result<()> {
        while self.ended.recv().await.is_some() {
            if self.handle.stage.borrow().accepts() {
                return Err(io::Error::other("a worker thread has ended"));
            }
        }
        Ok(())
    }
}

impl HttpServerHandle {
    /// From now on, every response says `Connection: close`.
    pub fn announce_close(&self) {
        self.stage.send_replace(Stage::Draining);
    }

    /// Stops accepting, and resolves when every connection is closed. A connection is closed after its response, which
    /// says `Connection: close`, or once it was idle for `idle_grace`.
    pub async fn stop(&self, idle_grace: Duration) {
        self.stage.send_replace(Stage::Stopping { idle_grace });
        self.stage.closed().await;
    }

    /// Closes every connection at once.
    pub async fn abort(&self) {
        self.stage.send_replace(Stage::Aborting);
        self.stage.closed().await;
    }
}
