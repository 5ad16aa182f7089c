use actix_http::h1::{Codec, Message};
use actix_web::{rt::Runtime, web::BytesMut};
use proptest::prelude::*;
use tokio_util::codec::Decoder;

use super::*;

const CHUNKED: &str = "4;name=\"a;b\"\r\nanim\r\nA\r\n0123456789\r\n2\r\nal\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n";

/// The end of the section if its bytes arrive in pieces of this size.
fn end_in_pieces(mut section: Section, bytes: &[u8], size: usize) -> Option<usize> {
    let mut before = 0;
    for piece in bytes.chunks(size) {
        if let Some(end) = section.end_in(piece) {
            return Some(before + end);
        }
        before += piece.len();
    }
    None
}

#[test]
fn a_head_ends_with_an_empty_line_with_or_without_carriage_returns() {
    for end in ["\r\n\r\n", "\n\n", "\r\n\n", "\n\r\n"] {
        let head = format!("\r\n\nGET / HTTP/1.1\r\nHost: a{end}");
        for size in 1..=head.len() {
            let bytes = format!("{head}\r\n\r\nGET");
            assert_eq!(end_in_pieces(Section::HEAD, bytes.as_bytes(), size), Some(head.len()), "{end:?} {size}");
        }
    }
}

#[test]
fn a_line_that_is_not_empty_does_not_end_a_head() {
    for bytes in ["\r\n\n\r\n", "a\r\n \r\nb\r\r\n", "a\n\rb\n", "GET / HTTP/1.1\r\n"] {
        assert_eq!({ Section::HEAD }.end_in(bytes.as_bytes()), None, "{bytes:?}");
    }
}

#[test]
fn a_body_with_a_length_ends_with_its_last_byte() {
    for size in 1..=8 {
        assert_eq!(end_in_pieces(Section::Body(5), b"\r\n\r\n5GET", size), Some(5));
        assert_eq!(end_in_pieces(Section::Body(5), b"12345", size), Some(5));
        assert_eq!(end_in_pieces(Section::Body(5), b"1234", size), None);
    }
}

#[test]
fn a_chunked_body_ends_after_its_trailers() {
    for size in 1..=CHUNKED.len() {
        let bytes = format!("{CHUNKED}0\r\n\r\nGET");
        assert_eq!(end_in_pieces(Section::CHUNKED_BODY, bytes.as_bytes(), size), Some(CHUNKED.len()), "{size}");
    }
    assert_eq!(end_in_pieces(Section::CHUNKED_BODY, b"0\r\n\r\n", 1), Some(5));
    assert_eq!(end_in_pieces(Section::CHUNKED_BODY, b"000 \r\n\r\nGET", 3), Some(8));
}

#[test]
fn an_end_in_the_data_of_a_chunk_does_not_count() {
    assert_eq!(end_in_pieces(Section::CHUNKED_BODY, b"8\r\n0\r\n\r\n0\r\n\r\n0\r\n\r\nGET", 1), Some(18));
}

#[test]
fn a_chunk_of_an_excessive_size_does_not_end() {
    let bytes = format!("{}\r\n{}", "f".repeat(40), CHUNKED.repeat(10));
    assert_eq!(end_in_pieces(Section::CHUNKED_BODY, bytes.as_bytes(), 7), None);
}

proptest! {
    #[test]
    fn a_section_ends_at_the_same_byte_for_every_size_of_pieces(text in "[\r\na02f;]{0,40}", size in 1..40_usize) {
        let bytes = text.as_bytes();
        for section in [Section::HEAD, Section::Body(7), Section::CHUNKED_BODY] {
            prop_assert_eq!(end_in_pieces(section, bytes, size), end_in_pieces(section, bytes, 40));
        }
    }
}

/// How actix decodes a request.
#[derive(Debug, PartialEq, Eq)]
enum Actix {
    Malformed,
    Incomplete,
    /// Its head, or its head and its body, had this many bytes.
    EndsAt(usize),
}

thread_local! {
    /// The codec needs a runtime for its clock. Each test creates one, not each case.
    static RUNTIME: Runtime = Runtime::new().expect("a runtime");
}

fn decode_with_actix(request: &str, with_body: bool) -> Actix {
    let mut codec = RUNTIME.with(|runtime| runtime.block_on(async { Codec::default() }));
    let mut bytes = BytesMut::from(request);
    loop {
        match codec.decode(&mut bytes) {
            Err(_) => return Actix::Malformed,
            Ok(None) => return Actix::Incomplete,
            Ok(Some(Message::Item(_))) if !with_body => return Actix::EndsAt(request.len() - bytes.len()),
            Ok(Some(Message::Chunk(None))) => return Actix::EndsAt(request.len() - bytes.len()),
            Ok(Some(Message::Item(_) | Message::Chunk(Some(_)))) => {}
        }
    }
}

/// Texts of this form. `NL` stands for a line end, valid or not.
fn texts(form: &str) -> impl Strategy<Value = String> {
    let form = form.replace("NL", "(\r\n|\r\n|\r\n|\n|\r|\n\r|x)");
    proptest::string::string_regex(&form).expect("a regular expression")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16 * ProptestConfig::default().cases))]

    #[test]
    fn a_head_that_actix_accepts_ends_where_actix_says(
        head in texts("(\r\n|\n)?GET / HTTP/1.1NLHost: aNL(X: [a ]?NL){0,2}NL[\r\na]{0,3}"),
    ) {
        let end = { Section::HEAD }.end_in(head.as_bytes());
        match decode_with_actix(&head, false) {
            Actix::Malformed => {}
            Actix::Incomplete => prop_assert_eq!(end, None),
            Actix::EndsAt(byte) => prop_assert_eq!(end, Some(byte)),
        }
    }

    #[test]
    fn a_chunked_body_that_actix_accepts_ends_where_actix_says(
        body in texts(concat!(
            "(0{0,2}[1-3]( |;[a;\"]{0,2})?\r\n[\r\na]{1,3}\r\n){0,2}",
            "0(;a)?\r\n([\r\na]{0,3}NL){0,3}NL[\r\na]{0,3}",
        )),
    ) {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let end = { Section::CHUNKED_BODY }.end_in(body.as_bytes());
        match decode_with_actix(&format!("{head}{body}"), true) {
            Actix::Malformed => {}
            Actix::Incomplete => prop_assert_eq!(end, None),
            Actix::EndsAt(byte) => prop_assert_eq!(end.map(|end| head.len() + end), Some(byte)),
        }
    }
}
