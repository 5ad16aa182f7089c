use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::{RawConnection, Response};

/// An HTTP client of one server. Each request opens a new connection.
#[derive(Clone, Debug)]
pub struct HttpClient {
    address: SocketAddr,
    authorization: Option<String>,
}

/// A request that is not sent yet.
#[derive(Debug)]
#[must_use]
pub struct Request {
    address: SocketAddr,
    method: String,
    head: String,
    body: Vec<u8>,
}

impl HttpClient {
    /// A client of the server at this address, without an API key.
    #[must_use]
    pub const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            authorization: None,
        }
    }

    /// The same client, sending this token as its API key.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        Self {
            authorization: Some(format!("Bearer {token}")),
            ..self
        }
    }

    /// A request with any method. The target is sent exactly as given.
    pub fn request(&self, method: &str, target: &str) -> Request {
        let request = Request {
            address: self.address,
            method: method.to_owned(),
            head: format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.address),
            body: Vec::new(),
        };
        self.authorization.iter().fold(request, |request, value| {
            request.header("Authorization", value)
        })
    }

    /// Sends a GET request.
    #[track_caller]
    #[must_use]
    pub fn get(&self, target: &str) -> Response {
        self.request("GET", target).send()
    }
}

impl Request {
    /// Adds a header. A name may be added more than once.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.head.extend([name, ": ", value, "\r\n"]);
        self
    }

    /// Sets the body. Unless it is empty, its length is declared.
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        if self.body.is_empty() {
            return self;
        }
        let length = self.body.len().to_string();
        self.header("Content-Length", &length)
    }

    /// Sets the body, to be sent in chunks, without a declared length.
    pub fn chunked(mut self, body: impl AsRef<[u8]>) -> Self {
        for chunk in body.as_ref().chunks(4096) {
            let size = format!("{:x}\r\n", chunk.len());
            self.body.extend([size.as_bytes(), chunk, b"\r\n"].concat());
        }
        self.body.extend_from_slice(b"0\r\n\r\n");
        self.header("Transfer-Encoding", "chunked")
    }

    /// Sets a JSON body and its media type.
    pub fn json(self, body: impl AsRef<[u8]>) -> Self {
        self.header("Content-Type", "application/json").body(body)
    }

    /// Sends the head of a JSON body of this length, which the server asks for by the status 100.
    #[track_caller]
    #[must_use]
    pub fn begin_json(self, length: usize) -> RawConnection {
        let typed = self
            .header("Content-Type", "application/json")
            .header("Content-Length", &length.to_string());
        typed.header("Expect", "100-continue").begin()
    }

    /// Sends the request and returns the response.
    #[track_caller]
    #[must_use]
    pub fn send(self) -> Response {
        let is_head = self.method == "HEAD";
        let mut connection = self.begin();
        if is_head {
            connection.response_to_head()
        } else {
            connection.response()
        }
    }

    /// Sends the request and returns its connection, from which no response is read yet.
    #[track_caller]
    #[must_use]
    pub fn begin(self) -> RawConnection {
        let bytes = [self.head.as_bytes(), b"\r\n", &self.body].concat();
        let mut connection = open_at_once(self.address);
        // A server that refuses the request may close before all of it is sent.
        let _ = connection.try_send(bytes);
        connection
    }
}

/// Opens a connection and returns within a second. If that took longer because the machine has stalled, another one is
/// opened: a server closes a connection that sends nothing, the management listener after two seconds.
fn open_at_once(address: SocketAddr) -> RawConnection {
    loop {
        let start = Instant::now();
        let connection = RawConnection::open(address);
        if start.elapsed() < Duration::from_secs(1) {
            return connection;
        }
    }
}
