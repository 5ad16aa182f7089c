//! The handshakes of one worker. Each has a timeout, and one more than the maximum closes the oldest: clients that
//! connect and send nothing cannot keep others out.

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    io,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::TcpStream,
    sync::{Notify, watch},
    time::sleep,
};
use tokio_rustls::TlsAcceptor;

use super::identity::CurrentTlsIdentity;
use crate::{
    limits::Limits,
    metrics::{HandshakeResult, HttpMetrics},
    transport::{client_stream::ClientStream, connections::Stage},
};

/// Maximum number of bytes that TLS accepts from actix and that are not in the socket yet, the same as in the socket. A
/// write into this buffer counts as written.
pub(super) const MAX_UNSENT: usize = 16 * 1024;

/// The handshakes of one worker.
pub(crate) struct Handshakes {
    identity: CurrentTlsIdentity,
    max: usize,
    timeout: Duration,
    stage: watch::Receiver<Stage>,
    metrics: Arc<HttpMetrics>,
    /// Handshakes under way in the order of their start, each with its eviction.
    under_way: RefCell<BTreeMap<u64, Rc<Notify>>>,
    next_id: Cell<u64>,
}

impl Handshakes {
    /// Creates the handshakes of one of the workers that share these limits.
    pub(crate) fn new(
        identity: CurrentTlsIdentity,
        limits: &Limits,
        stage: watch::Receiver<Stage>,
        metrics: Arc<HttpMetrics>,
    ) -> Self {
        Self {
            identity,
            max: limits.handshakes_per_worker(),
            timeout: limits.handshake_timeout,
            stage,
            metrics,
            under_way: RefCell::default(),
            next_id: Cell::default(),
        }
    }

    /// Returns the stream with TLS.
    ///
    /// # Errors
    /// If the handshake fails or is closed.
    pub(crate) async fn accept(&self, stream: TcpStream, peer: Option<SocketAddr>) -> io::Result<ClientStream> {
        let (id, evicted) = self.start();
        let handshake = TlsAcceptor::from(self.identity.config())
            .accept_with(stream, |connection| connection.set_buffer_limit(Some(MAX_UNSENT)));
        let closed = |reason: &str| Err(io::Error::other(reason));
        let (result, stream) = tokio::select! {
            biased;
            stream = handshake => {
                let result = if stream.is_ok() { HandshakeResult::Complete } else { HandshakeResult::Failed };
                (result, stream)
            }
            () = evicted.notified() => (HandshakeResult::Evicted, closed("closed to make room for others")),
            () = sleep(self.timeout) => (HandshakeResult::Timeout, closed("timeout")),
            () = self.end_of_stop() => (HandshakeResult::Stopped, closed("the server stops")),
        };
        self.under_way.borrow_mut().remove(&id);
        self.metrics.count_handshake(result);
        stream.map(|stream| ClientStream::Tls(Box::new(stream))).inspect_err(|error| {
            tracing::debug!(client = peer.as_ref().map(display), reason = %error, "TLS handshake failed");
        })
    }

    /// Adds a handshake, and closes the oldest if there are too many.
    fn start(&self) -> (u64, Rc<Notify>) {
        let mut under_way = self.under_way.borrow_mut();
        while under_way.len() >= self.max
            && let Some((_, oldest)) = under_way.pop_first()
        {
            oldest.notify_one();
        }
        let (id, evicted) = (self.next_id.get(), Rc::<Notify>::default());
        self.next_id.set(id + 1);
        under_way.insert(id, Rc::clone(&evicted));
        (id, evicted)
    }

    /// Resolves when the server has been stopping for the time after which it closes idle connections.
    async fn end_of_stop(&self) {
        let mut stage = self.stage.clone();
        let Ok(Stage::Stopping { idle_grace }) = stage.wait_for(|stage| *stage != Stage::Serving).await.map(|s| *s)
        else {
            return;
        };
        tokio::select! {
            () = sleep(idle_grace) => {}
            _ = stage.wait_for(|stage| *stage == Stage::Aborting) => {}
        }
    }
}
