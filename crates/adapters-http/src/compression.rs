//! Bodies go out compressed (gzip, RFC 1952) to clients that ask for it, where that is worth its time.

use std::io::Write;

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    http::header::{
        AcceptEncoding, CONTENT_ENCODING, ContentEncoding, Encoding, Header, HeaderName, HeaderValue, VARY,
    },
};
use flate2::{Compression, write::GzEncoder};

/// Bodies of up to so many bytes travel in one packet as they are.
const NOT_WORTH_IT: u64 = 1024;

pub(crate) const GZIP: (HeaderName, HeaderValue) = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
pub(crate) const VARIES: (HeaderName, HeaderValue) = (VARY, HeaderValue::from_static("accept-encoding"));

/// The answer in the form that the client prefers.
pub(crate) fn negotiated(request: &HttpRequest, mut response: HttpResponse) -> HttpResponse {
    let (name, value) = VARIES;
    response.headers_mut().insert(name, value);
    if !matches!(response.body().size(), BodySize::Sized(NOT_WORTH_IT..)) || !prefers_gzip(request) {
        return response;
    }
    let (name, value) = GZIP;
    response.headers_mut().insert(name, value);
    response.map_body(|_, body| {
        let bytes = body.try_into_bytes().unwrap_or_else(|_| unreachable!("a body with a size is there already"));
        BoxBody::new(gzip(&bytes, Compression::fast()))
    })
}

/// Whether it is what the client likes best (RFC 9110 §12.5.3). A header that is not valid asks for nothing, and a client
/// that accepts neither form gets its answer as it is.
pub(crate) fn prefers_gzip(request: &HttpRequest) -> bool {
    let forms = [Encoding::Known(ContentEncoding::Gzip), Encoding::Known(ContentEncoding::Identity)];
    let preferred = AcceptEncoding::parse(request).ok().and_then(|accepted| accepted.negotiate(forms.iter()));
    preferred == Some(Encoding::Known(ContentEncoding::Gzip))
}

pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes what it is given")
}
