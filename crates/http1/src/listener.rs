//! The listening socket, and the task that accepts its connections for the workers.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::select_all;
use socket2::SockRef;
use tokio::{
    sync::{mpsc::Sender, watch},
    time::sleep,
};

use crate::connection::Stage;

/// Maximum number of bytes in the socket of a connection that were not sent yet. Without it, the kernel buffers
/// megabytes for a client that does not read. Accepted sockets inherit it. Only Linux has it: on other systems, the
/// crate is built for its tests alone.
#[cfg(target_os = "linux")]
const MAX_NOT_SENT: u32 = 16 * 1024;

/// Size of the buffer for bytes that were not read yet; it is larger if a body can be. Without it, the kernel buffers more
/// for a client that sends while its response waits. Accepted sockets inherit it.
const MIN_NOT_READ: usize = 16 * 1024;

/// Length of the queue of connections that are not accepted yet. The system may have a lower maximum. If the queue is
/// full, a client retries after a second.
const BACKLOG: i32 = 4096;

/// Pause after a connection could not be accepted, for example because the process has too many open files.
const PAUSE: Duration = Duration::from_millis(500);

/// A worker, as the acceptor sees it.
pub(crate) struct Inbox {
    pub(crate) sender: Sender<TcpStream>,
    /// Number of connections of the worker, those in its inbox included.
    pub(crate) load: Arc<AtomicUsize>,
}

/// A listening socket for clients.
#[derive(Debug)]
pub struct HttpListener {
    socket: TcpListener,
    /// The address, with the port that the system chose.
    pub address: SocketAddr,
    /// Whether the process that started this one keeps the socket.
    pub is_inherited: bool,
}

impl HttpListener {
    /// A new socket at this address.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpListener::bind(address)?, false)
    }

    /// A socket that the process that started this one keeps: connections wait in it for the next process.
    ///
    /// # Errors
    /// If it does not listen.
    pub fn inherited(socket: TcpListener) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if !SockRef::from(&socket).is_listener()? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the socket does not listen",
            ));
        }
        Self::new(socket, true)
    }

    /// Bounds the bytes in the sockets of connections: some connect before the service has started.
    fn new(socket: TcpListener, is_inherited: bool) -> io::Result<Self> {
        let options = SockRef::from(&socket);
        #[cfg(target_os = "linux")]
        options.set_tcp_notsent_lowat(MAX_NOT_SENT)?;
        options.set_recv_buffer_size(MIN_NOT_READ)?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            is_inherited,
        })
    }

    /// Prepares the socket for bodies of this size. An inherited one keeps the length of its queue.
    pub(crate) fn prepare(&self, max_body_bytes: usize) -> io::Result<()> {
        let options = SockRef::from(&self.socket);
        if max_body_bytes > MIN_NOT_READ {
            options.set_recv_buffer_size(max_body_bytes)?;
        }
        self.socket.set_nonblocking(true)?;
        if self.is_inherited {
            Ok(())
        } else {
            options.listen(BACKLOG)
        }
    }

    /// Gives each connection to the worker with the fewest, until the server stops. If every worker has its maximum,
    /// connections wait in the socket. At the end, those that wait in a socket of this process are accepted: closing it
    /// resets them.
    ///
    /// # Errors
    /// If a worker ends before the server stops, or the socket cannot be polled.
    pub(crate) async fn accept(
        self,
        workers: Vec<Inbox>,
        mut stage: watch::Receiver<Stage>,
    ) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.socket)?;
        let ends = workers
            .iter()
            .map(|worker| Box::pin(worker.sender.closed()));
        let mut ended = select_all(ends);
        loop {
            let next = async {
                let worker = next_worker(&workers).await;
                let accepted = listener.accept().await;
                // The connection is registered with the runtime of its worker.
                let connection = accepted.and_then(|(connection, _)| connection.into_std());
                (worker, connection)
            };
            tokio::select! {
                biased;
                () = async { _ = stage.wait_for(|stage| !stage.accepts()).await } => break,
                _ = &mut ended => return Err(io::Error::other("a worker thread has ended")),
                (worker, accepted) = next => match accepted {
                    Ok(connection) => worker.give(connection),
                    Err(error) => {
                        tracing::warn!(%error, "a connection cannot be accepted");
                        sleep(PAUSE).await;
                    }
                },
            }
        }
        tracing::debug!("no further connections are accepted");
        let socket = listener.into_std()?;
        while !self.is_inherited
            && let Some(worker) = workers.iter().find(|worker| worker.has_room())
            && let Ok((connection, _)) = socket.accept()
        {
            connection.set_nonblocking(true)?;
            worker.give(connection);
        }
        Ok(())
    }
}

impl Inbox {
    fn has_room(&self) -> bool {
        self.sender.capacity() > 0
    }

    /// Waits for room in the inbox, or for the end of the worker.
    async fn room(&self) -> &Self {
        let _ = self.sender.reserve().await;
        self
    }

    /// Gives a connection to the worker, which has room for it: there is no other sender.
    fn give(&self, connection: TcpStream) {
        self.load.fetch_add(1, Ordering::Relaxed);
        // Fails if the worker has ended.
        let _ = self.sender.try_send(connection);
    }
}

/// Waits for a worker with room in its inbox, and returns the one with the fewest connections.
async fn next_worker(workers: &[Inbox]) -> &Inbox {
    let with_room = workers.iter().filter(|worker| worker.has_room());
    let least = with_room.min_by_key(|worker| worker.load.load(Ordering::Relaxed));
    if let Some(worker) = least {
        return worker;
    }
    let rooms = workers.iter().map(|worker| Box::pin(worker.room()));
    let (worker, ..) = select_all(rooms).await;
    worker
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn a_listener_that_stops_accepts_what_waits_in_its_own_socket() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = HttpListener::bind(address).expect("a free port");
        let inherited = HttpListener::inherited(TcpListener::bind(address).expect("a free port"))
            .expect("it listens");
        for (listener, accepted) in [(bound, 3), (inherited, 0)] {
            listener.prepare(0).expect("a socket that listens");
            let clients = [(); 3]
                .map(|()| TcpStream::connect(listener.address).expect("a place in the queue"));
            let (sender, mut receiver) = channel(clients.len());
            let inbox = Inbox {
                sender,
                load: Arc::default(),
            };
            let (_server, stage) = watch::channel(Stage::Aborting);

            listener.accept(vec![inbox], stage).await.expect("it stops");

            for client in clients.iter().take(accepted) {
                let connection = receiver.recv().await.expect("a connection");
                assert_eq!(connection.peer_addr().ok(), client.local_addr().ok());
            }
            assert!(receiver.recv().await.is_none());
        }
    }

    #[test]
    fn a_listener_bounds_the_bytes_in_its_sockets_whether_it_is_inherited_or_not() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = HttpListener::bind(address).expect("a free port");
        let socket = TcpListener::bind(address).expect("a free port");
        let inherited = HttpListener::inherited(socket).expect("it listens");
        for (listener, is_inherited) in [(bound, false), (inherited, true)] {
            assert_eq!(listener.is_inherited, is_inherited);
            let options = SockRef::from(&listener.socket);
            #[cfg(target_os = "linux")]
            assert_eq!(options.tcp_notsent_lowat().expect("an option"), 16_384);
            let not_read = || options.recv_buffer_size().expect("an option");
            let small = not_read();
            // Linux doubles it for what it needs itself.
            assert!([16_384, 2 * 16_384].contains(&small), "{small}");
            listener.prepare(32_768).expect("a socket that listens");
            assert_eq!(not_read(), 2 * small);
        }
    }
}
