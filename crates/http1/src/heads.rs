//! Decodes heads, and refuses some that actix would accept.

use std::mem;

use actix_http::{
    HttpMessage, Method, Request, StatusCode, Uri,
    error::ParseError,
    h1::{Codec, Message},
    header::HOST,
};
use bytes::{Buf, BytesMut};
use memchr::memchr_iter;
use tokio_util::codec::Decoder;

/// Maximum size of a head in bytes. The codec of actix accepts 128 KiB.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The status if a head is longer, or has too many headers.
const TOO_LARGE: StatusCode = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;

/// Maximum length of a request target in bytes. A longer one is a 414 (RFC 9110, section 15.5.15).
const MAX_TARGET_BYTES: usize = 8 * 1024;

/// Maximum length of a method in bytes. A longer one is a 501 (RFC 9112, section 3).
const MAX_METHOD_BYTES: usize = 32;

/// A longer head does not share its buffer with what follows it: the buffer is freed with the request.
const MAX_SHARED_BYTES: usize = 4 * 1024;

/// What arrives where a head is expected.
pub(crate) enum Head {
    Request(Request),
    /// Anything that is not a request within the limits, with the status of the response.
    Refused(StatusCode),
    /// The end of the connection.
    End,
}

/// Decodes one head. It is tried when the first bytes have arrived, and then when a line is complete. The codec limits
/// the number of lines, so that a client that sends byte by byte costs little.
#[derive(Default)]
pub(crate) struct HeadDecoder {
    /// Number of bytes in which no head was found.
    searched: usize,
}

impl HeadDecoder {
    /// Returns the head, or `None` if more bytes are needed.
    pub(crate) fn decode(&mut self, codec: &mut Codec, buffer: &mut BytesMut) -> Option<Head> {
        skip_empty_lines(buffer);
        let received = buffer.len();
        let searched = mem::replace(&mut self.searched, received);
        // Fewer bytes are left than before if an empty line is complete now.
        let new_bytes = buffer.get(searched..).unwrap_or_default();
        let is_first = searched == 0;
        let is_too_long = received > MAX_HEAD_BYTES;
        let is_due = is_first || is_too_long || new_bytes.contains(&b'\n');
        if new_bytes.is_empty() || !is_due {
            return None;
        }
        let refusal = refusal_of_lines(buffer);
        let request = match codec.decode(buffer) {
            Ok(Some(Message::Item(request))) => request,
            Ok(_) => {
                let too_large = is_too_long.then_some(TOO_LARGE);
                return refusal.or(too_large).map(Head::Refused);
            }
            Err(ParseError::TooLarge) => return Some(Head::Refused(TOO_LARGE)),
            Err(_) => return Some(Head::Refused(StatusCode::BAD_REQUEST)),
        };
        let length = received - buffer.len();
        if length > MAX_SHARED_BYTES {
            *buffer = BytesMut::from(&buffer[..]);
        }
        match refusal.or_else(|| refusal_of_head(&request, length)) {
            None => Some(Head::Request(request)),
            Some(status) => Some(Head::Refused(status)),
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

/// Returns the status with which the bytes of a head are refused, if they are. Later ones may be missing, and a body may
/// follow.
fn refusal_of_lines(bytes: &[u8]) -> Option<StatusCode> {
    let mut words = bytes.split(u8::is_ascii_whitespace);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    if method.len() > MAX_METHOD_BYTES {
        Some(StatusCode::NOT_IMPLEMENTED)
    } else if target.len() > MAX_TARGET_BYTES {
        Some(StatusCode::URI_TOO_LONG)
    } else if target.contains(&b'#') || has_lone_line_feed(bytes) {
        Some(StatusCode::BAD_REQUEST)
    } else {
        None
    }
}

/// Whether a line of a head ends in a lone LF, which the codec accepts (RFC 9112, section 2.2).
fn has_lone_line_feed(bytes: &[u8]) -> bool {
    let mut start = 0;
    for line_feed in memchr_iter(b'\n', bytes) {
        let line = &bytes[start..line_feed];
        if line.last() != Some(&b'\r') {
            return true;
        }
        if line.len() == 1 {
            return false;
        }
        start = line_feed + 1;
    }
    false
}

/// Returns the status with which a head of this length is refused, if it is.
fn refusal_of_head(request: &Request, length: usize) -> Option<StatusCode> {
    if request.method() == Method::CONNECT {
        return Some(StatusCode::NOT_IMPLEMENTED);
    }
    if !is_valid_target(request.uri(), request.method()) {
        return Some(StatusCode::BAD_REQUEST);
    }
    if length > MAX_HEAD_BYTES {
        return Some(TOO_LARGE);
    }
    let host = request.headers().get(HOST)?;
    if is_valid_host(host.as_bytes()) {
        None
    } else {
        Some(StatusCode::BAD_REQUEST)
    }
}

/// Whether a target has a form that the method allows (RFC 9112, section 3.2), and no `\` in its path, which some
/// programs read as `/`. The authority-form has no path.
fn is_valid_target(target: &Uri, method: &Method) -> bool {
    match target.path() {
        "*" => method == Method::OPTIONS,
        path => path.starts_with('/') && !path.contains('\\'),
    }
}

/// Whether the value of a `Host` header is `uri-host [ ":" port ]` (RFC 9112, section 3.2). Only the characters of the
/// host are checked.
fn is_valid_host(value: &[u8]) -> bool {
    let separator = value.iter().rposition(|byte| matches!(byte, b':' | b']'));
    let (host, port) = match separator {
        Some(at) if value[at] == b':' => (&value[..at], &value[at + 1..]),
        _ => (value, &b""[..]),
    };
    let address = host
        .strip_prefix(b"[")
        .and_then(|address| address.strip_suffix(b"]"));
    let is_host = match address {
        Some(address) => {
            let is_allowed = |byte: &u8| is_name_byte(*byte) || *byte == b':';
            !address.is_empty() && address.iter().all(is_allowed)
        }
        None => host.iter().all(|byte| is_name_byte(*byte)),
    };
    is_host && port.iter().all(u8::is_ascii_digit)
}

/// Whether a registered name can contain a byte (RFC 3986, section 3.2.2).
const fn is_name_byte(byte: u8) -> bool {
    matches!(
        byte,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'' | b'('
            | b')' | b'*' | b'+' | b',' | b';' | b'='
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "local")]
    async fn a_head_that_arrives_byte_by_byte_behind_empty_lines_is_decoded_at_its_end() {
        let mut codec = Codec::default();
        let mut decoder = HeadDecoder::default();
        let mut buffer = BytesMut::new();
        let (last, bytes) = b"\r\n\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
            .split_last()
            .expect("bytes");
        for byte in bytes {
            buffer.extend_from_slice(&[*byte]);
            assert!(decoder.decode(&mut codec, &mut buffer).is_none());
        }
        buffer.extend_from_slice(&[*last]);
        let head = decoder.decode(&mut codec, &mut buffer);
        assert!(matches!(head, Some(Head::Request(_))));
    }

    #[tokio::test(flavor = "local")]
    async fn the_bytes_after_a_head_do_not_count_as_its_length() {
        let head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let later = "x".repeat(MAX_HEAD_BYTES - head.len());
        let mut buffer = BytesMut::from((head.to_owned() + &later).as_str());
        let decoded = HeadDecoder::default().decode(&mut Codec::default(), &mut buffer);
        assert!(matches!(decoded, Some(Head::Request(_))));
    }

    #[tokio::test(flavor = "local")]
    async fn what_follows_a_long_head_does_not_keep_its_buffer() {
        let head = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n",
            "x".repeat(MAX_SHARED_BYTES)
        );
        let mut buffer = BytesMut::with_capacity(MAX_HEAD_BYTES);
        buffer.extend_from_slice((head + "GET /").as_bytes());
        let decoded = HeadDecoder::default().decode(&mut Codec::default(), &mut buffer);
        assert!(matches!(decoded, Some(Head::Request(_))));
        assert_eq!(&buffer[..], b"GET /");
        assert!(buffer.capacity() < MAX_SHARED_BYTES);
    }

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
    fn an_incomplete_head_is_refused_by_its_method_its_target_or_its_lines() {
        let long_target = format!("GET /{}", "x".repeat(MAX_TARGET_BYTES));
        let long_method = "M".repeat(MAX_METHOD_BYTES + 1);
        for (refused, status) in [
            (long_method.as_str(), 501),
            (&format!("{long_method} / HTTP/1.1\r\n"), 501),
            (&long_target, 414),
            (&format!("{long_target} HTTP/1.1\r\n"), 414),
            ("GET /#", 400),
            ("GET /a#b HTTP/1.1\r\n", 400),
            ("GET / HTTP/1.1\n", 400),
            ("GET / HTTP/1.1\r\nA: b\n", 400),
            ("GET / HTTP/1.1\r\nA: b\r\n\n", 400),
        ] {
            let refusal = refusal_of_lines(refused.as_bytes());
            assert_eq!(
                refusal.map(|status| status.as_u16()),
                Some(status),
                "{refused}"
            );
        }
        for accepted in [
            "",
            "GET",
            &long_method[1..],
            &long_target[..long_target.len() - 1],
            "A#B / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nA: #\r\n",
            "POST / HTTP/1.1\r\nA: b\r\n\r\nbody\n",
        ] {
            assert_eq!(refusal_of_lines(accepted.as_bytes()), None, "{accepted}");
        }
    }
}
