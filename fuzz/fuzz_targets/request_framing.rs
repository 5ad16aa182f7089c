//! The requests of a connection do not depend on how its bytes are split. The input is what a client sends on a
//! connection: requests, one after the other.
#![no_main]

use actix_rt::Runtime;
use animal_store_adapters_http::fuzzing::serve_pieces;
use animal_store_fuzz::pieces;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static RUNTIME: Runtime = Runtime::new().expect("a runtime");
}

/// The maximum length of a piece.
const READ_BYTES: usize = 8 * 1024;

fuzz_target!(|data: &[u8]| {
    let whole = requests(data.chunks(READ_BYTES));
    assert_eq!(requests(data.chunks(1)), whole, "byte by byte");
    assert_eq!(requests(pieces(data).flat_map(|piece| piece.chunks(READ_BYTES))), whole, "in pieces");
});

fn requests<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(String, Option<Vec<u8>>)> {
    RUNTIME.with(|runtime| runtime.block_on(serve_pieces(Box::new(pieces))))
}
