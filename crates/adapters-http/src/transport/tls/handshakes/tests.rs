use std::{future::poll_fn, path::Path, pin::Pin, task::Poll};

use animal_store_test_servers::Certificates;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpSocket,
    task::{JoinHandle, spawn_local, yield_now},
    time::Instant,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::{TlsFiles, transport::write_timeout::WriteTimeoutStream};

const TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_GRACE: Duration = Duration::from_secs(1);

/// So that few writes fill the buffers of a connection.
const SOCKET_BUFFER_BYTES: u32 = 64 * 1024;

/// A worker with at most two handshakes under way.
struct Worker {
    handshakes: Rc<Handshakes>,
    stage: watch::Sender<Stage>,
    folder: TempDir,
}

impl Worker {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let certificates = Certificates::make(folder.path());
        let (certificate, private_key) = (certificates.server, certificates.server_key);
        let identity = TlsFiles { certificate, private_key, client_authorities: None }.load().unwrap();
        let limits = Limits { max_connections: 10, max_handshakes: 2, handshake_timeout: TIMEOUT, ..Limits::MINIMAL };
        let (stage, receiver) = watch::channel(Stage::Serving);
        let identity = CurrentTlsIdentity::new(identity);
        let handshakes = Rc::new(Handshakes::new(identity, &limits, receiver, Arc::default()));
        Self { handshakes, stage, folder }
    }

    /// Accepts a connection. Returns the side of the client, and the server's result.
    async fn accept(&self) -> (TcpStream, JoinHandle<io::Result<ClientStream>>) {
        let (client, server) = connection().await;
        let handshakes = Rc::clone(&self.handshakes);
        (client, spawn_local(async move { handshakes.accept(server, None).await }))
    }

    /// Opens a connection with TLS. Returns both sides.
    async fn connect(&self) -> (TlsStream<TcpStream>, ClientStream) {
        let (client, accepted) = self.accept().await;
        let client = connect(client, self.folder.path(), &[b"h2", b"http/1.1"]).await.unwrap();
        (client, accepted.await.unwrap().unwrap())
    }
}

/// Returns both sides of a connection whose buffers are small, and which delays no segment.
async fn connection() -> (TcpStream, TcpStream) {
    let [listening, connecting] = [(); 2].map(|()| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(SOCKET_BUFFER_BYTES).unwrap();
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    });
    listening.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = listening.listen(1).unwrap();
    let client = connecting.connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, server)
}

async fn connect(stream: TcpStream, folder: &Path, protocols: &[&[u8]]) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("authority.pem")).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into().unwrap(), stream).await
}

fn error(result: Result<io::Result<ClientStream>, tokio::task::JoinError>) -> String {
    result.unwrap().err().expect("no connection").to_string()
}

#[tokio::test(flavor = "local")]
async fn http_1_1_is_the_only_protocol() {
    let worker = Worker::new();
    let (client, _server) = worker.connect().await;
    assert_eq!(client.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));

    let (client, accepted) = worker.accept().await;
    assert!(connect(client, worker.folder.path(), &[b"h2"]).await.is_err());
    assert!(error(accepted.await).contains("protocol"), "refused by ALPN");
    let (client, accepted) = worker.accept().await;
    let _client = connect(client, worker.folder.path(), &[]).await.unwrap();
    assert!(accepted.await.unwrap().is_ok(), "a client without ALPN");
}

#[tokio::test(flavor = "local")]
async fn one_more_handshake_closes_the_oldest() {
    let worker = Worker::new();
    let (_first_client, first) = worker.accept().await;
    yield_now().await;
    let (_second_client, second) = worker.accept().await;
    yield_now().await;

    worker.connect().await;
    assert_eq!(error(first.await), "closed to make room for others");
    assert!(!second.is_finished());
    worker.connect().await;
    assert!(!second.is_finished(), "a handshake that is complete has made room");
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_handshake_has_a_timeout() {
    let worker = Worker::new();
    let (_client, accepted) = worker.accept().await;
    let start = Instant::now();
    assert_eq!((error(accepted.await), start.elapsed()), ("timeout".to_owned(), TIMEOUT));
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_handshake_under_way_has_the_idle_grace_of_a_stop() {
    let worker = Worker::new();
    let (_client, accepted) = worker.accept().await;
    let (client, completed) = worker.accept().await;
    yield_now().await;
    let start = Instant::now();
    worker.stage.send_replace(Stage::Stopping { idle_grace: IDLE_GRACE });

    let _client = connect(client, worker.folder.path(), &[]).await.unwrap();
    assert!(completed.await.unwrap().is_ok(), "in time");
    assert_eq!((error(accepted.await), start.elapsed()), ("the server stops".to_owned(), IDLE_GRACE));

    let (_client, accepted) = worker.accept().await;
    yield_now().await;
    worker.stage.send_replace(Stage::Aborting);
    error(accepted.await);
    assert_eq!(start.elapsed(), IDLE_GRACE, "at once");
    let counts = &worker.handshakes.metrics.handshakes;
    let count = |result: HandshakeResult| counts[result as usize].get();
    assert_eq!((count(HandshakeResult::Stopped), count(HandshakeResult::Evicted)), (2, 0));
}

#[tokio::test(flavor = "local")]
async fn a_connection_that_ends_without_a_closing_message_is_the_end_of_the_input() {
    let (mut client, mut server) = Worker::new().connect().await;
    client.write_all(b"bytes").await.unwrap();
    client.flush().await.unwrap();
    client.get_mut().0.shutdown().await.unwrap();

    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "bytes");
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn closing_a_connection_waits_for_its_client_until_the_write_timeout() {
    let (mut client, server) = Worker::new().connect().await;
    let mut server = WriteTimeoutStream::new(server, TIMEOUT);
    let mut sent = 0;
    while let Poll::Ready(count) =
        poll_fn(|context| Poll::Ready(Pin::new(&mut server).poll_write(context, &[b'x'; 8 * 1024]))).await
    {
        sent += count.unwrap();
    }
    let start = Instant::now();
    assert_eq!(server.flush().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(server.shutdown().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed(), TIMEOUT);

    let mut received = vec![0; sent];
    drop(server);
    let complete = client.read_exact(&mut received).await;
    assert!(complete.is_err(), "the rest was in the buffer of TLS");
}
