//! What several fuzz targets share.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

/// The headers with this name and these values. `None`: one of them cannot be the value of a header.
pub fn headers(name: &'static str, values: &[&[u8]]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_bytes(value).ok()?,
        );
    }
    Some(headers)
}

/// Splits bytes into pieces. Their lengths depend on the bytes: another input is split at other places.
pub fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut seed = crc32fast::hash(bytes);
    let mut rest = bytes;
    std::iter::from_fn(move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // One piece in eight is long. None is empty: an empty one would be the end of a file.
        let length = 1 + if seed >> 29 == 0 {
            seed >> 16
        } else {
            (seed >> 24) % 8
        };
        let (piece, after) = rest.split_at(rest.len().min(length as usize));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
