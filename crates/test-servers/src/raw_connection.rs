use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ClientConnection, Stream};
use socket2::{Domain, Socket, Type};

use crate::{Response, certificates::tls_client};

/// A connection that sends any bytes, well-formed HTTP or not, and reads one response at a time.
#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
    tls: Option<ClientConnection>,
    /// The start of the bytes sent last, for the messages of failed assertions.
    sent: String,
    received: Vec<u8>,
}

impl RawConnection {
    /// The longest wait for the server, also on a machine that stalls.
    pub const TIMEOUT: Duration = Duration::from_mins(1);

    /// Connects to a server.
    #[track_caller]
    #[must_use]
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, Self::TIMEOUT);
        Self::on(stream.expect("a connection"))
    }

    /// Connects from this address. The system acknowledges only a few kilobytes that are not read.
    #[track_caller]
    #[must_use]
    pub fn open_unbuffered(address: SocketAddr, client: Ipv4Addr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a buffer");
        let client = SocketAddr::from((client, 0));
        socket.bind(&client.into()).expect("a local address");
        socket.connect(&address.into()).expect("a connection");
        Self::on(socket.into())
    }

    fn on(stream: TcpStream) -> Self {
        let timeout = Some(Self::TIMEOUT);
        stream.set_read_timeout(timeout).expect("a read timeout");
        stream.set_write_timeout(timeout).expect("a write timeout");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream,
            tls: None,
            sent: String::new(),
            received: Vec::new(),
        }
    }

    /// Connects to a server named `localhost` with TLS. The handshake takes place when the first bytes are sent.
    #[track_caller]
    #[must_use]
    pub fn open_tls(address: SocketAddr, authority: &Path) -> Self {
        let name = "localhost".try_into().expect("a name");
        let tls = ClientConnection::new(Arc::new(tls_client(authority)), name).expect("a client");
        Self {
            tls: Some(tls),
            ..Self::open(address)
        }
    }

    /// A second handle, so that one thread can send while another reads.
    #[must_use]
    pub fn sender(&self) -> TcpStream {
        self.stream.try_clone().expect("a second handle")
    }

    /// Sends bytes.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the connection accepts bytes");
    }

    /// Sends bytes, which the server may refuse by closing the connection.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        self.sent = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        match &mut self.tls {
            Some(tls) => Stream::new(tls, &mut self.stream).write_all(bytes),
            None => self.stream.write_all(bytes),
        }
    }

    /// Closes the sending side, without the closing message of TLS; responses can still be read.
    pub fn finish_sending(&mut self) {
        // Fails if the connection was reset, which ends sending as well.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next response.
    #[track_caller]
    #[must_use]
    pub fn response(&mut self) -> Response {
        self.expect_response(false)
            .expect("a response, not the end of the connection")
    }

    /// The next response, to a HEAD request.
    #[track_caller]
    #[must_use]
    pub fn response_to_head(&mut self) -> Response {
        self.expect_response(true)
            .expect("a response, not the end of the connection")
    }

    /// All responses until the connection ends.
    #[track_caller]
    #[must_use]
    pub fn responses_to_end(&mut self) -> Vec<Response> {
        std::iter::from_fn(|| self.expect_response(false)).collect()
    }

    /// The next response, or `None` if the connection ends before one begins.
    ///
    /// # Errors
    ///
    /// If the connection ends within a response, or none is complete within [`RawConnection::TIMEOUT`].
    pub fn try_response(&mut self) -> io::Result<Option<Response>> {
        self.read_response(false)
    }

    /// Asserts that the connection ends without another response.
    #[track_caller]
    pub fn assert_closed(&mut self) {
        if let Some(response) = self.expect_response(false) {
            panic!("a response to no request: {response:?}");
        }
    }

    /// Waits for the first bytes of the next response.
    #[track_caller]
    pub fn assert_response_begins(&mut self) {
        assert!(
            self.read_more().expect("a response") > 0,
            "the connection ends"
        );
    }

    #[track_caller]
    fn expect_response(&mut self, to_head: bool) -> Option<Response> {
        self.read_response(to_head).unwrap_or_else(|error| {
            panic!(
                "{error} after {:?}, received {:?}",
                self.sent,
                String::from_utf8_lossy(&self.received)
            )
        })
    }

    fn read_response(&mut self, to_head: bool) -> io::Result<Option<Response>> {
        let start = Instant::now();
        loop {
            if let Some(response) = Response::take(&mut self.received, &self.sent, to_head) {
                return Ok(Some(response));
            }
            if start.elapsed() > Self::TIMEOUT {
                return Err(ErrorKind::TimedOut.into());
            }
            if self.read_more()? == 0 {
                return if self.received.is_empty() {
                    Ok(None)
                } else {
                    Err(ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// Reads the available bytes and returns their number, 0 at the end of the connection.
    fn read_more(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let mut read = || match &mut self.tls {
            Some(tls) => Stream::new(tls, &mut self.stream).read(&mut buffer),
            None => self.stream.read(&mut buffer),
        };
        let mut result = read();
        // The process was suspended, and a read with a timeout does not go on by itself.
        while matches!(&result, Err(error) if error.kind() == ErrorKind::Interrupted) {
            result = read();
        }
        match result {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ) =>
            {
                Ok(0)
            }
            read => read.inspect(|&count| self.received.extend_from_slice(&buffer[..count])),
        }
    }
}
