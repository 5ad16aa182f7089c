//! Each head and each body that actix accepts ends where actix says, however the bytes are split. The input is what a
//! client sends on a connection: requests, one after the other.
#![no_main]

use actix_http::h1::{Codec, Message, MessageType};
use actix_rt::Runtime;
use animal_store_adapters_http::fuzzing::RequestFraming;
use animal_store_fuzz::pieces;
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use tokio_util::codec::Decoder;

thread_local! {
    static RUNTIME: Runtime = Runtime::new().expect("a runtime");
}

fuzz_target!(|data: &[u8]| {
    let whole = ends([data].into_iter());
    assert_eq!(ends(data.chunks(1)), whole, "byte by byte");
    assert_eq!(ends(pieces(data)), whole, "in pieces");
});

/// Returns the ends of the sections of the requests, up to the first one that is malformed or incomplete.
fn ends<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<usize> {
    let mut codec = RUNTIME.with(|runtime| runtime.block_on(async { Codec::default() }));
    let framing = RequestFraming::new();
    let (mut ends, mut taken, mut is_body) = (Vec::new(), 0, false);
    // What actix receives and has not decoded yet.
    let mut buffer = BytesMut::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let count = framing.take(piece);
            buffer.extend_from_slice(&piece[..count]);
            taken += count;
            piece = &piece[count..];
            let request = loop {
                match codec.decode(&mut buffer) {
                    Err(_) => return ends,
                    Ok(Some(Message::Chunk(Some(_)))) => assert!(is_body),
                    Ok(None) => break None,
                    Ok(Some(Message::Item(request))) => break Some(Some(request)),
                    Ok(Some(Message::Chunk(None))) => break Some(None),
                }
            };
            assert_eq!(request.is_some(), framing.is_complete(), "at byte {taken}, after {ends:?}");
            let Some(request) = request else {
                if count == 0 {
                    // The head is too long.
                    return ends;
                }
                continue;
            };
            assert!(buffer.is_empty(), "actix does not need {} bytes before byte {taken}", buffer.len());
            ends.push(taken);
            if let Some(request) = request {
                if matches!(codec.message_type(), MessageType::Stream) {
                    // The rest of the connection is of another protocol.
                    return ends;
                }
                framing.start_body(&request);
                is_body = !framing.is_complete();
            } else {
                is_body = false;
            }
            if !is_body {
                framing.start_head();
            }
        }
    }
    ends
}
