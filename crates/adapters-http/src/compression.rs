//! Bodies go out compressed (gzip, RFC 1952) to clients that ask for it, where that is worth its time.

use std::cell::RefCell;

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    http::header::{
        AcceptEncoding, CONTENT_ENCODING, ContentEncoding, Encoding, Header, HeaderName, HeaderValue, VARY,
    },
};
use flate2::{Compress, Compression, FlushCompress, Status};

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
        BoxBody::new(gzip(&bytes))
    })
}

/// Whether it is what the client likes best (RFC 9110 §12.5.3). A header that is not valid asks for nothing, and a client
/// that accepts neither form gets its answer as it is.
pub(crate) fn prefers_gzip(request: &HttpRequest) -> bool {
    let forms = [Encoding::Known(ContentEncoding::Gzip), Encoding::Known(ContentEncoding::Identity)];
    let preferred = AcceptEncoding::parse(request).ok().and_then(|accepted| accepted.negotiate(forms.iter()));
    preferred == Some(Encoding::Known(ContentEncoding::Gzip))
}

thread_local! {
    /// Each worker keeps its own: making its tables anew takes as long as a page of 20 animals.
    static ENCODER: RefCell<Compress> = RefCell::new(Compress::new_gzip(Compression::fast(), WINDOW_BITS));
}

/// The largest window that there is.
const WINDOW_BITS: u8 = 15;

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    ENCODER.with_borrow_mut(|encoder| {
        encoder.reset();
        let (mut rest, mut gzipped) = (bytes, Vec::new());
        loop {
            gzipped.reserve(rest.len() / 2 + 64);
            let before = encoder.total_in();
            let status = encoder.compress_vec(rest, &mut gzipped, FlushCompress::Finish);
            if status.expect("any bytes can be compressed") == Status::StreamEnd {
                return gzipped;
            }
            let taken = usize::try_from(encoder.total_in() - before).expect("a length of memory");
            rest = &rest[taken..];
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn what_is_compressed_can_be_read_again(bytes in vec(any::<u8>(), 0..5000), times in 1..4_usize) {
            let bytes = bytes.repeat(times);
            let mut read = Vec::new();
            GzDecoder::new(&*gzip(&bytes)).read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, bytes);
        }
    }
}
