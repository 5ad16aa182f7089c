use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::port;

/// A TCP proxy between clients and a server that simulates faults.
pub struct FaultProxy {
    address: SocketAddr,
    server: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    delay: Duration,
    refusing: bool,
    /// Text whose chunks are held up. Each chunk contains the empty text.
    holding: Option<&'static str>,
    /// Number of chunks that were held up.
    held: usize,
    accepted: usize,
    /// The streams of each connection to the client and to the server.
    connections: Vec<[TcpStream; 2]>,
}

impl FaultProxy {
    /// Starts a proxy to this port of 127.0.0.1.
    pub fn to(port: u16) -> Self {
        let listener = port::listener();
        let address = listener.local_addr().expect("an address");
        let mut proxy = Self {
            address,
            server: ([127, 0, 0, 1], port).into(),
            shared: Arc::default(),
            listener: None,
        };
        proxy.listen(listener);
        proxy
    }

    /// The address for clients.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection. New connections are accepted.
    pub fn cut(&self) {
        for stream in self.shared.lock().connections.drain(..).flatten() {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }

    /// Closes the direction to the client of every connection. The other direction still works, and so do new
    /// connections.
    pub fn half_close(&self) {
        for [client, _] in &self.shared.lock().connections {
            // It may be closed already.
            let _ = client.shutdown(Shutdown::Write);
        }
    }

    /// Keeps connections open and accepts new ones, but forwards nothing until [`heal`](Self::heal).
    pub fn freeze(&self) {
        self.hold("");
    }

    /// Holds up each chunk that contains this text, and the data behind it on the same connection, until
    /// [`heal`](Self::heal).
    pub fn hold(&self, text: &'static str) {
        self.shared.lock().holding = Some(text);
    }

    /// Number of chunks that were held up, without those behind them on the same connection.
    pub fn held(&self) -> usize {
        self.shared.lock().held
    }

    /// Number of connections that were accepted.
    pub fn accepted(&self) -> usize {
        self.shared.lock().accepted
    }

    /// Delays the data in each direction.
    pub fn delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }

    /// Closes every connection and refuses new ones until [`heal`](Self::heal).
    pub fn refuse(&mut self) {
        {
            let mut state = self.shared.lock();
            state.refusing = true;
            state.holding = None;
        }
        if let Some(listener) = self.listener.take() {
            // The thread checks the state when a client connects.
            let _ = TcpStream::connect(self.address);
            listener.join().expect("the thread does not panic");
        }
        self.cut();
    }

    /// Ends every fault. Data that was held up is forwarded.
    pub fn heal(&mut self) {
        {
            let mut state = self.shared.lock();
            state.holding = None;
            state.refusing = false;
            state.delay = Duration::ZERO;
        }
        self.shared.changed.notify_all();
        if self.listener.is_none() {
            self.listen(TcpListener::bind(self.address).expect("the port is still free"));
        }
    }

    fn listen(&mut self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        let server = self.server;
        self.listener = Some(thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.lock().refusing {
                    return;
                }
                shared.connect(client, server);
            }
        }));
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.refuse();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while it holds the lock")
    }

    fn connect(self: &Arc<Self>, client: TcpStream, server: SocketAddr) {
        // Without a server, the connection of the client is closed.
        let Ok(server) = TcpStream::connect(server) else {
            return;
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true).expect("a TCP stream");
        }
        let clone = |stream: &TcpStream| stream.try_clone().expect("a file descriptor");
        {
            let mut state = self.lock();
            state.accepted += 1;
            state.connections.push([clone(&client), clone(&server)]);
        }
        for (from, to) in [(clone(&client), clone(&server)), (server, client)] {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.forward(from, to));
        }
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            self.hold_up(&buffer[..length]);
            // If this fails, the other direction finds out whether the connection was closed or half closed.
            let _ = to.write_all(&buffer[..length]);
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn hold_up(&self, bytes: &[u8]) {
        let contains = |text: &str| {
            let mut ends = 0..=bytes.len();
            ends.any(|end| bytes[..end].ends_with(text.as_bytes()))
        };
        let mut state = self.lock();
        if state.holding.is_some_and(contains) {
            state.held += 1;
            state = self
                .changed
                .wait_while(state, |state| state.holding.is_some())
                .expect("nothing panics");
        }
        let delay = state.delay;
        drop(
            self.changed
                .wait_timeout_while(state, delay, |state| state.delay == delay)
                .expect("nothing panics"),
        );
    }
}
