use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::port;

/// Stands between a client and a server, passes on what they say, and misbehaves when told to.
pub struct FaultProxy {
    address: SocketAddr,
    server: SocketAddr,
    link: Arc<Link>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Link {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    frozen: bool,
    delay: Duration,
    refusing: bool,
    /// What is to be held up, and how often it was.
    holding: Option<&'static str>,
    held: usize,
    /// Both ends of each connection, the client's first.
    open: Vec<[TcpStream; 2]>,
}

impl FaultProxy {
    /// A proxy to this port of 127.0.0.1.
    pub fn to(port: u16) -> Self {
        let listener = port::listener();
        let address = listener.local_addr().expect("an address");
        let mut proxy = Self { address, server: ([127, 0, 0, 1], port).into(), link: Arc::default(), listening: None };
        proxy.listen(listener);
        proxy
    }

    /// Where clients connect.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection. New ones are taken.
    pub fn cut(&self) {
        for stream in self.link.lock().open.drain(..).flatten() {
            // Its other end may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.link.changed.notify_all();
    }

    /// Lets every client find the end of what the server says, while what the client says is still passed on. New
    /// connections are taken.
    pub fn half_close(&self) {
        for [client, _] in &self.link.lock().open {
            // It may have been closed.
            let _ = client.shutdown(Shutdown::Write);
        }
    }

    /// Keeps connections open and takes new ones, but passes nothing on until it is [healed](Self::heal).
    pub fn freeze(&self) {
        self.link.lock().frozen = true;
    }

    /// Holds up whatever this text occurs in, and what is behind it on its connection, until it is
    /// [healed](Self::heal).
    pub fn hold(&self, text: &'static str) {
        self.link.lock().holding = Some(text);
    }

    /// How much was held up for its text so far.
    pub fn held(&self) -> usize {
        self.link.lock().held
    }

    /// Holds up whatever is passed on by this much, in each direction.
    pub fn delay(&self, delay: Duration) {
        self.link.lock().delay = delay;
    }

    /// Closes every connection and refuses new ones until it is [healed](Self::heal).
    pub fn refuse(&mut self) {
        {
            let mut state = self.link.lock();
            state.refusing = true;
            state.frozen = false;
            state.holding = None;
        }
        self.stop_listening();
        self.cut();
    }

    /// Behaves again. What was held up is passed on.
    pub fn heal(&mut self) {
        {
            let mut state = self.link.lock();
            state.frozen = false;
            state.holding = None;
            state.refusing = false;
            state.delay = Duration::ZERO;
        }
        self.link.changed.notify_all();
        if self.listening.is_none() {
            self.listen(TcpListener::bind(self.address).expect("the port is still free"));
        }
    }

    fn listen(&mut self, listener: TcpListener) {
        let (link, server) = (Arc::clone(&self.link), self.server);
        self.listening = Some(thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if link.lock().refusing {
                    return;
                }
                link.join(client, server);
            }
        }));
    }

    fn stop_listening(&mut self) {
        if let Some(listening) = self.listening.take() {
            // It looks up when somebody connects.
            let _ = TcpStream::connect(self.address);
            listening.join().expect("it ends");
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.refuse();
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the lock")
    }

    fn join(self: &Arc<Self>, client: TcpStream, server: SocketAddr) {
        // Where there is no server, the client finds its connection closed.
        let Ok(server) = TcpStream::connect(server) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).expect("a TCP stream");
        }
        let clone = |stream: &TcpStream| stream.try_clone().expect("a file descriptor");
        self.lock().open.push([clone(&client), clone(&server)]);
        for (from, to) in [(clone(&client), clone(&server)), (server, client)] {
            let link = Arc::clone(self);
            thread::spawn(move || link.pass_on(from, to));
        }
    }

    fn pass_on(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            self.hold_up(&buffer[..length]);
            // Where it cannot be passed on, the other direction knows whether the connection has ended or is half closed.
            let _ = to.write_all(&buffer[..length]);
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn hold_up(&self, bytes: &[u8]) {
        let mut state = self.changed.wait_while(self.lock(), |state| state.frozen).expect("nothing panics");
        if state.holding.is_some_and(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes())) {
            state.held += 1;
            state = self.changed.wait_while(state, |state| state.holding.is_some()).expect("nothing panics");
        }
        let delay = state.delay;
        drop(self.changed.wait_timeout_while(state, delay, |state| state.delay == delay).expect("nothing panics"));
    }
}
