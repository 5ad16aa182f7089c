//! A cursor is the only text of its position, and each position has one.
#![no_main]

use animal_store_adapters_http::fuzzing::{decode_cursor, encode_cursor};
use animal_store_domain::PetId;
use libfuzzer_sys::fuzz_target;

/// The position before the first pet, which no pet has.
const START: &str = "AAAAAAAAAAA";

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = str::from_utf8(data)
        && let Some(position) = decode_cursor(text)
    {
        assert_eq!(position.map_or(START.to_owned(), encode_cursor), text);
    }
    if let Some(bytes) = data.first_chunk()
        && let Ok(id) = PetId::parse(i64::from_be_bytes(*bytes))
    {
        let cursor = encode_cursor(id);
        assert_eq!(decode_cursor(&cursor), Some(Some(id)));
    }
});
