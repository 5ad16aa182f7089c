//! The requests of a connection do not depend on how its bytes are split. The input is what a client sends on a
//! connection: requests, one after the other.
#![no_main]

use std::{cell::RefCell, io, rc::Rc};

use actix_http::{HttpMessage, Request, Response, body::BoxBody};
use actix_rt::Runtime;
use actix_service::fn_service;
use animal_store_fuzz::pieces;
use animal_store_http1::{ReceivedBody, fuzzing::serve};
use futures_util::stream;
use libfuzzer_sys::fuzz_target;
use tokio::io::{join, sink};
use tokio_util::io::StreamReader;

thread_local! {
    static RUNTIME: Runtime = Runtime::new().expect("a runtime");
}

/// The maximum length of a piece.
const READ_BYTES: usize = 8 * 1024;

/// Small, so that bodies beyond it are frequent.
const MAX_BODY_BYTES: usize = 1024;

fuzz_target!(|data: &[u8]| {
    let whole = requests(data.chunks(READ_BYTES));
    assert_eq!(requests(data.chunks(1)), whole, "byte by byte");
    assert_eq!(
        requests(pieces(data).flat_map(|piece| piece.chunks(READ_BYTES))),
        whole,
        "in pieces"
    );
});

/// The method, the target and the body of each request of a connection whose bytes arrive in pieces. `None`: the body
/// is not complete.
fn requests<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(String, Option<Vec<u8>>)> {
    let requests = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&requests);
    let service = fn_service(move |request: Request| {
        let recorded = Rc::clone(&recorded);
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            let body = match request.extensions_mut().remove() {
                Some(ReceivedBody(body)) => body.ok().map(Into::into),
                None => Some(Vec::new()),
            };
            recorded.borrow_mut().push((line, body));
            Ok::<_, Response<_>>(Response::ok().set_body(BoxBody::new(())))
        }
    });
    let pieces = StreamReader::new(stream::iter(pieces.map(io::Result::Ok)));
    RUNTIME.with(|runtime| {
        runtime.block_on(serve(
            join(Box::pin(pieces), sink()),
            MAX_BODY_BYTES,
            &service,
        ))
    });
    requests.take()
}
