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
    if !is_worth_it(response.body().size()) || !prefers_gzip(request) {
        return response;
    }
    let (name, value) = GZIP;
    response.headers_mut().insert(name, value);
    response.map_body(|_, body| {
        let bytes = body.try_into_bytes().unwrap_or_else(|_| unreachable!("a body with a size is there already"));
        BoxBody::new(gzip(&bytes))
    })
}

/// Whether a body of this size is large enough.
pub(crate) fn is_worth_it(size: BodySize) -> bool {
    matches!(size, BodySize::Sized(bytes) if bytes > NOT_WORTH_IT)
}

/// Whether it is what the client likes best (RFC 9110 §12.5.3). A header that is not valid asks for nothing, and a client
/// that accepts neither form gets its answer as it is.
pub(crate) fn prefers_gzip(request: &HttpRequest) -> bool {
    let forms = [Encoding::Known(ContentEncoding::Gzip), Encoding::Known(ContentEncoding::Identity)];
    let preferred = AcceptEncoding::parse(request).ok().and_then(|accepted| accepted.negotiate(forms.iter()));
    preferred == Some(Encoding::Known(ContentEncoding::Gzip))
}

thread_local! {
    /// Each worker keeps its own: making its tables anew takes half as long as compressing a page of 20 animals.
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

    use actix_web::{http::header::ACCEPT_ENCODING, test::TestRequest};
    use flate2::read::GzDecoder;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A request with a line for each of these.
    fn accepting(values: &[&[u8]]) -> HttpRequest {
        let lines = values.iter().map(|value| (ACCEPT_ENCODING, HeaderValue::from_bytes(value).unwrap()));
        lines.fold(TestRequest::default(), TestRequest::append_header).to_http_request()
    }

    fn answer(request: &HttpRequest, body: &[u8]) -> (HttpResponse, Vec<u8>) {
        let response = negotiated(request, HttpResponse::Ok().body(body.to_vec()));
        let (response, body) = response.into_parts();
        let BodySize::Sized(size) = body.size() else { panic!("a length") };
        let Ok(bytes) = body.try_into_bytes() else { panic!("a body that is there already") };
        assert_eq!(u64::try_from(bytes.len()), Ok(size));
        (response.map_into_boxed_body(), bytes.to_vec())
    }

    #[test]
    fn what_fits_into_one_packet_goes_out_as_it_is() {
        for (bytes, compressed) in [(0, false), (1, false), (1023, false), (1024, false), (1025, true), (100_000, true)]
        {
            let plain = vec![b'x'; bytes];
            let (response, body) = answer(&accepting(&[b"gzip"]), &plain);

            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), compressed, "{bytes}");
            assert_eq!(response.headers().get(VARY), Some(&VARIES.1));
            let mut read = body.clone();
            if compressed {
                assert!(body.len() < bytes);
                read.clear();
                GzDecoder::new(&body[..]).read_to_end(&mut read).unwrap();
            }
            assert_eq!(read, plain);
        }
    }

    #[test]
    fn nothing_is_compressed_for_who_does_not_ask_for_it() {
        let plain = vec![b'x'; 5000];
        let (response, body) = answer(&accepting(&[]), &plain);

        assert_eq!((response.headers().get(CONTENT_ENCODING), response.headers().get(VARY)), (None, Some(&VARIES.1)));
        assert_eq!(body, plain);
    }

    #[test]
    fn a_header_that_is_no_text_asks_for_nothing() {
        for values in [&[&b"gzip, \xff"[..]][..], &[b"gzip", b"\xff"], &["gz\u{ef}p".as_bytes()]] {
            assert!(!prefers_gzip(&accepting(values)), "{values:?}");
        }
    }

    #[test]
    fn an_item_that_is_not_valid_does_not_count() {
        for (value, preferred) in [
            ("gzip;q=1.001", false),
            ("gzip;q=", false),
            ("gzip;q=1e0", false),
            ("br;q=9, gzip", true),
            ("identity;q=9, gzip;q=0.1", true),
            ("gzip;level=9", false),
            (";;;,gzip", true),
        ] {
            assert_eq!(prefers_gzip(&accepting(&[value.as_bytes()])), preferred, "{value:?}");
        }
    }

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
