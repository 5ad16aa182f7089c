//! Requests as text, one connection each.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use crate::program::DEADLINE;

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    /// Parses everything that a connection received until its end. `None` if that is not a complete response.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().expect("a status");
        let response = Self { status, head: head.to_owned(), body: body.to_owned() };
        let complete = response.header("content-length").is_none_or(|length| length == body.len().to_string());
        complete.then_some(response)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn replayed(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }
}

/// Opens a connection and sends this text.
#[track_caller]
pub(crate) fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
    stream.write_all(text.as_bytes()).expect("the connection is open");
    stream
}

#[track_caller]
pub(crate) fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the end of the connection");
    text
}

/// Sends a request and returns its response.
#[track_caller]
pub(crate) fn exchange(address: SocketAddr, request: &str) -> Response {
    let text = read_to_end(send(address, request));
    Response::parse(&text).unwrap_or_else(|| panic!("no complete response: {text:?}"))
}

#[track_caller]
pub(crate) fn get(address: SocketAddr, target: &str, token: &str) -> Response {
    let head = format!("GET {target} HTTP/1.1\r\nHost: store.example\r\nConnection: close\r\n");
    exchange(address, &format!("{head}Authorization: Bearer {token}\r\n\r\n"))
}

/// Request that creates a pet with this name. `fields` are further header fields, each with its line end.
pub(crate) fn create_request(token: &str, fields: &str, name: &str) -> String {
    let body = format!(r#"{{"name":"{name}","categoryId":1}}"#);
    let length = body.len();
    format!(
        "POST /v1/pets HTTP/1.1\r\nHost: store.example\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         {fields}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// The same with an idempotency key.
pub(crate) fn keyed_create_request(token: &str, key: &str, name: &str) -> String {
    create_request(token, &format!("Idempotency-Key: {key}\r\n"), name)
}
