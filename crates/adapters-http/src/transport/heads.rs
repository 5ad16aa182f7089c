//! Receives heads, and refuses some that actix would accept.

use actix_http::{HttpMessage, Request, error::ParseError, h1::Message, header::HOST};
use actix_web::{
    http::StatusCode,
    web::{Buf, BytesMut},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::Decoder;

use super::{
    client::Client,
    connection::{End, State},
};

/// Maximum size of a head in bytes. The codec of actix accepts 128 KiB.
pub(super) const MAX_HEAD_BYTES: usize = 32 * 1024;

/// Maximum length of a request target in bytes. A longer one is a 414 (RFC 9110, section 15.5.15).
const MAX_TARGET_BYTES: usize = 8 * 1024;

/// What arrives where a head is expected.
pub(super) enum Head {
    Request(Request),
    /// Anything that is not a request within the limits, with the status of the response.
    Refused(StatusCode),
    /// The end of the connection.
    End,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Client<T> {
    /// Receives the next head. It is decoded when its first bytes have arrived, and then when a line is complete: the
    /// codec limits their number, so that a client that sends byte by byte costs little.
    pub(super) async fn receive_head(&mut self) -> Result<Head, End> {
        let mut searched = 0;
        loop {
            skip_empty_lines(&mut self.buffer);
            let received = self.buffer.len();
            if received > searched && (searched == 0 || self.buffer[searched..].contains(&b'\n')) {
                match self.codec.decode(&mut self.buffer) {
                    Ok(Some(Message::Item(request))) => {
                        let refusal = refusal(&request, received - self.buffer.len());
                        return Ok(refusal.map_or(Head::Request(request), Head::Refused));
                    }
                    Ok(_) => {}
                    Err(ParseError::TooLarge) => {
                        return Ok(Head::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
                    }
                    Err(_) => return Ok(Head::Refused(StatusCode::BAD_REQUEST)),
                }
            }
            if received > MAX_HEAD_BYTES {
                return Ok(Head::Refused(too_large(&self.buffer)));
            }
            searched = received;
            if received > 0 && self.slot.connection.state.get() == State::Idle {
                self.slot.enter(State::Head);
            }
            match (self.read().await, self.slot.connection.state.get()) {
                (Ok(0), _) | (Err(End::Timeout | End::Stop), State::Idle) => return Ok(Head::End),
                (Ok(_), _) => {}
                (Err(End::Timeout), State::Head) => {
                    return Ok(Head::Refused(StatusCode::REQUEST_TIMEOUT));
                }
                (Err(end), _) => return Err(end),
            }
        }
    }
}

/// Empty lines before a request are not part of it (RFC 9112, section 2.2).
fn skip_empty_lines(buffer: &mut BytesMut) {
    let lines = [&b"\n"[..], b"\r\n"];
    while let Some(line) = lines.into_iter().find(|line| buffer.starts_with(line)) {
        buffer.advance(line.len());
    }
}

/// Returns the status with which a head of this length is refused, if it is.
fn refusal(request: &Request, length: usize) -> Option<StatusCode> {
    let uri = request.uri();
    // The parts of a target in absolute form.
    let authority = uri
        .authority()
        .map_or(0, |authority| authority.as_str().len());
    if authority + uri.path_and_query().map_or(0, |path| path.as_str().len()) > MAX_TARGET_BYTES {
        return Some(StatusCode::URI_TOO_LONG);
    }
    if length > MAX_HEAD_BYTES {
        return Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let host = request.headers().get(HOST)?;
    (!is_valid_host(host.as_bytes())).then_some(StatusCode::BAD_REQUEST)
}

/// Returns the status for an incomplete head of more than [`MAX_HEAD_BYTES`]: its first line or its fields are too
/// long.
fn too_large(head: &[u8]) -> StatusCode {
    if head[..MAX_TARGET_BYTES].contains(&b'\n') {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    } else {
        StatusCode::URI_TOO_LONG
    }
}

/// Whether the value of a `Host` header is `uri-host [ ":" port ]` (RFC 9112, section 3.2). Only the characters of the
/// host are checked.
fn is_valid_host(value: &[u8]) -> bool {
    let colon = value
        .iter()
        .rposition(|&byte| byte == b':' || byte == b']')
        .filter(|&index| value[index] == b':');
    let (host, port) = value.split_at(colon.unwrap_or(value.len()));
    let is_ip_literal = host.len() > 2 && host.starts_with(b"[") && host.ends_with(b"]");
    let name = if is_ip_literal {
        &host[1..host.len() - 1]
    } else {
        host
    };
    name.iter().all(|&byte| {
        byte.is_ascii_alphanumeric()
            || b"-._~%!$&'()*+,;=".contains(&byte)
            || is_ip_literal && byte == b':'
    }) && port.iter().skip(1).all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_an_optional_port() {
        for good in [
            "",
            "a",
            "store.example",
            "a:80",
            "a:",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:80",
            "b%C3%BCro",
            "_x",
        ] {
            assert!(is_valid_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b",
            "a/b",
            "a:b",
            "a:80:80",
            "user@a",
            "a?b",
            "a#b",
            "[::1",
            "::1",
            "[]",
            "[a]b",
            "b\u{fc}ro",
            "<a>",
        ] {
            assert!(!is_valid_host(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn a_head_is_too_large_by_its_target_or_by_its_fields() {
        for (start, status) in [("", 414), ("GET /", 414), ("GET / HTTP/1.1\r\nX: ", 431)] {
            let head = start.to_owned() + &"x".repeat(MAX_HEAD_BYTES + 1 - start.len());
            assert_eq!(too_large(head.as_bytes()), status, "{start}");
        }
    }
}
