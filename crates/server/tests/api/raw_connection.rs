//! A connection that sends any bytes, well-formed or not, and reads answers one by one.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use serde_json::Value;

/// Nothing that is waited for takes longer, however busy the machine is.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// One connection to the service.
pub(crate) struct RawConnection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// What came back, byte for byte.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawConnection {
    #[track_caller]
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, DEADLINE).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        stream.set_write_timeout(Some(DEADLINE)).expect("a deadline");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, received: Vec::new() }
    }

    /// A second handle, so that one thread can send while another reads.
    pub(crate) fn sender(&self) -> TcpStream {
        self.stream.try_clone().expect("a second handle")
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the connection takes bytes");
    }

    /// For what may be closed or reset while it is still being sent.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends no more, and still reads.
    pub(crate) fn finish_sending(&mut self) {
        // A connection that was reset meanwhile sends no more either.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next answer, complete.
    #[track_caller]
    pub(crate) fn response(&mut self) -> RawResponse {
        self.read_response(false).expect("an answer, not the end of the connection")
    }

    /// The next answer, to a HEAD request.
    #[track_caller]
    pub(crate) fn response_to_head(&mut self) -> RawResponse {
        self.read_response(true).expect("an answer, not the end of the connection")
    }

    /// Every answer until the connection ends.
    #[track_caller]
    pub(crate) fn responses_to_end(&mut self) -> Vec<RawResponse> {
        std::iter::from_fn(|| self.read_response(false)).collect()
    }

    /// The connection ends, and nothing comes before its end.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self) {
        if let Some(response) = self.read_response(false) {
            panic!("an answer that nobody asked for: {response:?}");
        }
    }

    /// Whether nothing comes for so long, the end of the connection included.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a deadline");
        let read = self.stream.read(&mut [0; 1]);
        self.stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        read.is_err_and(|error| is_timeout(&error))
    }

    /// Sends a byte each `pause` until the service answers or closes.
    #[track_caller]
    pub(crate) fn dribble(&mut self, byte: u8, pause: Duration) {
        let start = Instant::now();
        self.stream.set_read_timeout(Some(pause)).expect("a deadline");
        loop {
            match self.read_more() {
                // Nothing yet: go on.
                Err(error) if is_timeout(&error) => {}
                Ok(_) | Err(_) => break,
            }
            assert!(start.elapsed() < DEADLINE, "the service waits for ever");
            if self.try_send([byte]).is_err() {
                break;
            }
        }
        self.stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    }

    fn read_response(&mut self, to_head: bool) -> Option<RawResponse> {
        let start = Instant::now();
        loop {
            if let Some(response) = take_response(&mut self.received, to_head) {
                return Some(response);
            }
            assert!(start.elapsed() < DEADLINE, "no complete answer in time");
            match self.read_more() {
                Ok(false) => {}
                Ok(true) if self.received.is_empty() => return None,
                Ok(true) => panic!("cut short: {}", String::from_utf8_lossy(&self.received)),
                Err(error) => panic!("neither an answer nor the end of the connection: {error}"),
            }
        }
    }

    /// Whether the connection has ended; an error where nothing came in time.
    fn read_more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Ok(true),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(false)
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl RawResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let body = self.json();
        assert_eq!((&body["code"], &body["status"]), (&code.into(), &status.into()), "{body}");
    }
}

fn take_response(received: &mut Vec<u8>, to_head: bool) -> Option<RawResponse> {
    let end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(received[..end].to_vec()).expect("a head is ASCII");
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer begins with {head:?}"));
    let mut response = RawResponse { status, head, body: Vec::new() };
    let without_body = to_head || status < 200 || status == 204 || status == 304;
    let length = if without_body {
        0
    } else {
        response.header("content-length").expect("Content-Length").parse().expect("a length")
    };
    if received.len() < end + length {
        return None;
    }
    response.body = received[end..end + length].to_vec();
    received.drain(..end + length);
    Some(response)
}
