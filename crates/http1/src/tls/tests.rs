use std::{
    cell::RefCell, future::poll_fn, net::SocketAddr, path::Path, rc::Rc, sync::Arc, task::Poll,
    time::Duration,
};

use animal_store_test_servers::{Certificates, tls_client};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, spawn_local, yield_now},
    time::Instant,
};
use tokio_rustls::{TlsConnector, client};

use super::{identity::TlsFiles, *};
use crate::{
    connection::Stage,
    limits::ConnectionLimits,
    pool::tests::{Worker, assert_elapsed},
    wire::Wire,
};

type ServerStream = TlsStream<Socket>;

const TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// More than the interval in which timeouts are checked.
const TOLERANCE: Duration = Duration::from_millis(300);

struct TlsWorker {
    worker: Worker,
    identity: CurrentTlsIdentity,
    folder: TempDir,
}

impl TlsWorker {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let certificates = Certificates::make(folder.path());
        let files = TlsFiles {
            certificate: certificates.server,
            private_key: certificates.server_key,
            client_authorities: None,
        };
        let identity = files.load().unwrap();
        let limits = ConnectionLimits {
            max_connections: 10,
            handshake_timeout: TIMEOUT,
            ..ConnectionLimits::default()
        };
        Self {
            worker: Worker::start(limits),
            identity: CurrentTlsIdentity::new(identity),
            folder,
        }
    }

    /// Accepts a connection. Returns the side of the client, and the server's result.
    async fn accept(&self) -> (TcpStream, JoinHandle<io::Result<ServerStream>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let server = Socket::new(listener.accept().await.unwrap().0);
        let identity = self.identity.clone();
        let slot = self.worker.pool.admit(None).await;
        (
            client,
            spawn_local(async move { accept(&identity, server, &slot).await }),
        )
    }

    /// Opens a connection with TLS. Returns both sides.
    async fn connect(&self) -> (client::TlsStream<TcpStream>, ServerStream) {
        let (client, accepted) = self.accept().await;
        let client = connect(client, self.folder.path(), &[b"h2", b"http/1.1"])
            .await
            .unwrap();
        (client, accepted.await.unwrap().unwrap())
    }
}

async fn connect(
    stream: TcpStream,
    folder: &Path,
    protocols: &[&[u8]],
) -> io::Result<client::TlsStream<TcpStream>> {
    let mut config = tls_client(&folder.join("authority.pem"));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
        .connect("localhost".try_into().unwrap(), stream)
        .await
}

fn error(result: Result<io::Result<ServerStream>, tokio::task::JoinError>) -> String {
    result.unwrap().expect_err("no connection").to_string()
}

#[tokio::test(flavor = "local")]
async fn http_1_1_is_the_only_protocol() {
    let tls = TlsWorker::new();
    let (client, _server) = tls.connect().await;
    assert_eq!(client.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));

    let (client, accepted) = tls.accept().await;
    assert!(connect(client, tls.folder.path(), &[b"h2"]).await.is_err());
    assert!(
        error(accepted.await).contains("protocol"),
        "refused by ALPN"
    );
    let (client, accepted) = tls.accept().await;
    let _client = connect(client, tls.folder.path(), &[]).await.unwrap();
    assert!(accepted.await.unwrap().is_ok(), "a client without ALPN");
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_handshake_has_a_timeout() {
    let tls = TlsWorker::new();
    let (_client, accepted) = tls.accept().await;
    let start = Instant::now();
    assert_eq!(error(accepted.await), "timeout");
    assert_elapsed(start, TIMEOUT..TIMEOUT + TOLERANCE);
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_handshake_under_way_has_the_idle_grace_of_a_stop() {
    let tls = TlsWorker::new();
    let (_client, accepted) = tls.accept().await;
    let (client, completed) = tls.accept().await;
    yield_now().await;
    let start = Instant::now();
    tls.worker.stage.send_replace(Stage::Stopping {
        since: start,
        idle_grace: IDLE_GRACE,
    });

    let _client = connect(client, tls.folder.path(), &[]).await.unwrap();
    assert!(completed.await.unwrap().is_ok(), "in time");
    assert_eq!(error(accepted.await), "the server stops");
    assert_elapsed(start, IDLE_GRACE..IDLE_GRACE + TOLERANCE);

    let (_client, accepted) = tls.accept().await;
    yield_now().await;
    tls.worker.stage.send_replace(Stage::Aborting);
    error(accepted.await);
    assert!(start.elapsed() < IDLE_GRACE + TOLERANCE, "at once");
}

#[tokio::test(flavor = "local")]
async fn a_connection_that_ends_without_a_closing_message_is_the_end_of_the_input() {
    let tls = TlsWorker::new();
    let (mut client, server) = tls.connect().await;
    let mut server = Wire::new(server, tls.worker.pool.admit(None).await.connection());
    client.write_all(b"bytes").await.unwrap();
    client.flush().await.unwrap();
    client.get_mut().0.shutdown().await.unwrap();

    assert_eq!((server.read().await, server.read().await), (Ok(5), Ok(0)));
}

#[tokio::test(flavor = "local")]
async fn a_response_that_is_longer_than_the_buffer_of_tls_arrives_whole() {
    let tls = TlsWorker::new();
    let (mut client, mut server) = tls.connect().await;
    let sending = spawn_local(async move {
        server.write_all(&vec![b'x'; 160 * 1024]).await?;
        server.shutdown().await
    });

    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();
    assert_eq!(received.len(), 160 * 1024);
    sending.await.unwrap().unwrap();
}

#[test]
fn an_identity_is_replaced_only_by_another_one() {
    let folder = TempDir::new().unwrap();
    let made = Certificates::make(folder.path());
    let files = TlsFiles {
        certificate: made.server,
        private_key: made.server_key,
        client_authorities: Some(made.authority),
    };
    let load = |files: &TlsFiles| files.load().unwrap();
    let current = CurrentTlsIdentity::new(files.load().unwrap());
    let config = |current: &CurrentTlsIdentity| Arc::clone(&current.get().config);
    let before = config(&current);

    assert!(!current.replace(load(&files)));
    assert!(
        Arc::ptr_eq(&before, &config(&current)),
        "session tickets stay valid"
    );
    assert!(current.replace(load(&TlsFiles {
        client_authorities: None,
        ..files.clone()
    })));
    assert!(current.replace(load(&files)));
    assert!(!Arc::ptr_eq(&before, &config(&current)));
}

/// A handshake with this number of steps, each of which is logged under its name.
fn steps(
    count: usize,
    name: &'static str,
    log: &Rc<RefCell<Vec<&'static str>>>,
) -> impl Future<Output = ()> + use<> {
    let log = Rc::clone(log);
    let mut left = count;
    poll_fn(move |context| {
        log.borrow_mut().push(name);
        left -= 1;
        context.waker().wake_by_ref();
        if left == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

#[tokio::test(flavor = "local")]
async fn addresses_take_turns_with_the_steps_of_handshakes_and_other_tasks_run_between_them() {
    let limits = ConnectionLimits {
        max_connections: 10,
        ..ConnectionLimits::default()
    };
    let worker = Worker::start(limits);
    let log = Rc::default();
    for (name, client) in [("a", 1), ("a", 1), ("a", 1), ("b", 2), ("c", 3)] {
        let peer = SocketAddr::from(([192, 0, 2, client], 40_000));
        let slot = worker.pool.admit(Some(peer)).await;
        let handshake = steps(2, name, &log);
        spawn_local(async move { in_turns(&slot, handshake).await });
    }
    let requests = Rc::clone(&log);
    spawn_local(async move {
        for _ in 0..20 {
            requests.borrow_mut().push("request");
            yield_now().await;
        }
    });
    worker.pool.closed().await;

    let log = log.borrow();
    let handshakes: Vec<_> = log
        .iter()
        .copied()
        .filter(|name| *name != "request")
        .collect();
    assert_eq!(handshakes.len(), 10, "{log:?}");
    assert_eq!(handshakes.concat()[..6], *"abcabc", "{log:?}");
    // Two handshakes can be neighbours: one at the end of a round of all tasks, one at the start of the next.
    let has_request = |tasks: &[&str]| tasks.contains(&"request");
    assert!(log.windows(3).all(has_request), "{log:?}");
}
