//! The check of chunked bodies accepts the grammar of RFC 9112, section 7.1, within its limits, and the codec ends what
//! it accepts at the same byte. The input is what follows a head.
#![no_main]

use std::sync::LazyLock;

use actix_http::h1::{Codec, Message};
use actix_rt::Runtime;
use actix_web::web::BytesMut;
use animal_store_fuzz::pieces;
use animal_store_http1::fuzzing::accepted_framing;
use libfuzzer_sys::fuzz_target;
use regex::bytes::Regex;
use tokio_util::codec::Decoder;

thread_local! {
    /// The codec needs it for its clock.
    static RUNTIME: Runtime = Runtime::new().expect("a runtime");
}

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

const MAX_SIZE_DIGITS: usize = 16;
const MAX_EXTRA_BYTES: usize = 16 * 1024;

static SIZE: LazyLock<Regex> = LazyLock::new(|| rule("[0-9A-Fa-f]+"));

/// Any number of extensions.
static EXTENSIONS: LazyLock<Regex> = LazyLock::new(|| {
    let quoted = r#""(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*""#;
    let value = format!(r"[\t ]*=[\t ]*(?:{TOKEN}|{quoted})");
    rule(&format!(r"(?:[\t ]*;[\t ]*{TOKEN}(?:{value})?)*"))
});

static TRAILER: LazyLock<Regex> =
    LazyLock::new(|| rule(&format!(r"{TOKEN}:[\t \x21-\x7e\x80-\xff]*")));

const TOKEN: &str = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+";

fuzz_target!(|data: &[u8]| {
    let accepted = accepted_framing([data]);
    assert_eq!(accepted_framing(pieces(data)), accepted, "in pieces");
    let end = body_end(data);
    if let Some(end) = end {
        assert_eq!(accepted, end, "the end by the grammar");
    }
    let decoded =
        RUNTIME.with(|runtime| runtime.block_on(async { decoded_end(&data[..accepted]) }));
    assert_eq!(decoded, end, "the end by the codec");
});

/// A whole text by a rule of the grammar.
fn rule(pattern: &str) -> Regex {
    Regex::new(&format!("(?s-u)^(?:{pattern})$")).expect("a pattern")
}

/// The end of the body by the grammar. `None`: it is invalid or incomplete.
fn body_end(data: &[u8]) -> Option<usize> {
    let mut rest = data;
    let mut extra_bytes = 0;
    loop {
        let line = take_line(&mut rest)?;
        let digits = line
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let (size, extensions) = line.split_at(digits);
        if !SIZE.is_match(size) || digits > MAX_SIZE_DIGITS || !EXTENSIONS.is_match(extensions) {
            return None;
        }
        extra_bytes += extensions.len();
        let size = u64::from_str_radix(str::from_utf8(size).ok()?, 16).ok()?;
        if size == 0 {
            break;
        }
        let data = rest.get(usize::try_from(size).ok()?..)?;
        rest = data.strip_prefix(b"\r\n")?;
    }
    loop {
        let line = take_line(&mut rest)?;
        if line.is_empty() {
            break;
        }
        if !TRAILER.is_match(line) {
            return None;
        }
        extra_bytes += line.len();
    }
    (extra_bytes <= MAX_EXTRA_BYTES).then_some(data.len() - rest.len())
}

/// Takes a line, and returns it without its CRLF.
fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.windows(2).position(|bytes| bytes == b"\r\n")?;
    let line = &rest[..end];
    *rest = &rest[end + 2..];
    Some(line)
}

/// The number of bytes after which the codec ends the body. `None`: it is invalid or incomplete.
fn decoded_end(data: &[u8]) -> Option<usize> {
    let mut codec = Codec::default();
    let head = codec.decode(&mut BytesMut::from(HEAD));
    assert!(matches!(head, Ok(Some(Message::Item(_)))));
    let mut bytes = BytesMut::from(data);
    loop {
        match codec.decode(&mut bytes).ok()?? {
            Message::Chunk(Some(_)) => {}
            Message::Chunk(None) => return Some(data.len() - bytes.len()),
            Message::Item(_) => unreachable!("the body has not ended"),
        }
    }
}
