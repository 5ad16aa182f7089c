use actix_http::h1::{Codec, Message};
use actix_web::web::BytesMut;
use proptest::prelude::*;
use tokio_util::codec::Decoder;

use super::*;

const CHUNKED: &str = "4;name=\"a;b\"\r\nanim\r\nA\r\n0123456789\r\n2\r\nal\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n";

/// Where the part ends, when its bytes come in pieces of this size.
fn end_in_pieces(mut part: Part, bytes: &[u8], size: usize) -> Option<usize> {
    let mut before = 0;
    for piece in bytes.chunks(size) {
        if let Some(end) = part.end_in(piece) {
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
            assert_eq!(end_in_pieces(Part::HEAD, bytes.as_bytes(), size), Some(head.len()), "{end:?} {size}");
        }
    }
}

#[test]
fn lines_that_are_not_empty_end_no_head() {
    for bytes in ["\r\n\n\r\n", "a\r\n \r\nb\r\r\n", "a\n\rb\n", "GET / HTTP/1.1\r\n"] {
        assert_eq!({ Part::HEAD }.end_in(bytes.as_bytes()), None, "{bytes:?}");
    }
}

#[test]
fn a_body_of_known_length_ends_with_its_last_byte() {
    for size in 1..=8 {
        assert_eq!(end_in_pieces(Part::Length(5), b"\r\n\r\n5GET", size), Some(5));
        assert_eq!(end_in_pieces(Part::Length(5), b"12345", size), Some(5));
        assert_eq!(end_in_pieces(Part::Length(5), b"1234", size), None);
    }
}

#[test]
fn a_chunked_body_ends_behind_its_trailers() {
    for size in 1..=CHUNKED.len() {
        let bytes = format!("{CHUNKED}0\r\n\r\nGET");
        assert_eq!(end_in_pieces(Part::CHUNKS, bytes.as_bytes(), size), Some(CHUNKED.len()), "{size}");
    }
    assert_eq!(end_in_pieces(Part::CHUNKS, b"0\r\n\r\n", 1), Some(5));
    assert_eq!(end_in_pieces(Part::CHUNKS, b"000 \r\n\r\nGET", 3), Some(8));
}

#[test]
fn what_looks_like_an_end_within_a_chunk_is_none() {
    assert_eq!(end_in_pieces(Part::CHUNKS, b"8\r\n0\r\n\r\n0\r\n\r\n0\r\n\r\nGET", 1), Some(18));
}

#[test]
fn a_size_beyond_all_bounds_never_ends() {
    let bytes = format!("{}\r\n{}", "f".repeat(40), CHUNKED.repeat(10));
    assert_eq!(end_in_pieces(Part::CHUNKS, bytes.as_bytes(), 7), None);
}

proptest! {
    #[test]
    fn a_part_ends_at_the_same_place_however_it_is_cut(text in "[\r\na02f;]{0,40}", size in 1..40_usize) {
        let bytes = text.as_bytes();
        for part in [Part::HEAD, Part::Length(7), Part::CHUNKS] {
            prop_assert_eq!(end_in_pieces(part, bytes, size), end_in_pieces(part, bytes, 40));
        }
    }
}

/// What actix makes of a request.
#[derive(Debug, PartialEq, Eq)]
enum Actix {
    Refuses,
    WantsMore,
    /// This many bytes were its head, or its head and its body.
    EndsAt(usize),
}

fn ask_actix(request: &str, with_body: bool) -> Actix {
    // The codec keeps a clock, which needs a runtime.
    let runtime = actix_web::rt::Runtime::new().expect("a runtime");
    let mut codec = runtime.block_on(async { Codec::default() });
    let mut bytes = BytesMut::from(request);
    loop {
        match codec.decode(&mut bytes) {
            Err(_) => return Actix::Refuses,
            Ok(None) => return Actix::WantsMore,
            Ok(Some(Message::Item(_))) if !with_body => return Actix::EndsAt(request.len() - bytes.len()),
            Ok(Some(Message::Chunk(None))) => return Actix::EndsAt(request.len() - bytes.len()),
            Ok(Some(Message::Item(_) | Message::Chunk(Some(_)))) => {}
        }
    }
}

/// Texts of this form, where `NL` is a line end, good or bad.
fn texts(form: &str) -> impl Strategy<Value = String> {
    let form = form.replace("NL", "(\r\n|\r\n|\r\n|\n|\r|\n\r|x)");
    proptest::string::string_regex(&form).expect("a regular expression")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_head_that_actix_accepts_ends_where_actix_says(
        head in texts("(\r\n|\n)?GET / HTTP/1.1NLHost: aNL(X: [a ]?NL){0,2}NL[\r\na]{0,3}"),
    ) {
        let end = { Part::HEAD }.end_in(head.as_bytes());
        match ask_actix(&head, false) {
            Actix::Refuses => {}
            Actix::WantsMore => prop_assert_eq!(end, None),
            Actix::EndsAt(place) => prop_assert_eq!(end, Some(place)),
        }
    }

    #[test]
    fn a_chunked_body_that_actix_accepts_ends_where_actix_says(
        body in texts("(0{0,2}[1-3]( |;[a;\"]{0,2})?\r\n[\r\na]{1,3}\r\n){0,2}0(;a)?\r\n([\r\na]{0,3}NL){0,3}NL[\r\na]{0,3}"),
    ) {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let end = { Part::CHUNKS }.end_in(body.as_bytes());
        match ask_actix(&format!("{head}{body}"), true) {
            Actix::Refuses => {}
            Actix::WantsMore => prop_assert_eq!(end, None),
            Actix::EndsAt(place) => prop_assert_eq!(end.map(|end| head.len() + end), Some(place)),
        }
    }
}
