//! Compression of responses (gzip, RFC 1952).
//!
//! **Problem.** A page of a list is much smaller when compressed, but compression costs CPU for each response.
//!
//! **Invariant.** A list is compressed if the client names gzip, prefers it, and the body is larger than the threshold.
//! A file of the program is compressed once, whatever its size. The content is the same, and every response that may be
//! compressed says so in `Vary`.
//!
//! **Proof.** The unit tests; `server/tests/api/compression.rs` over sockets.

use std::{cell::RefCell, io::Read, sync::OnceLock};

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::header::{
        AcceptEncoding, CACHE_CONTROL, CONTENT_ENCODING, ContentEncoding, Encoding, Header,
        HeaderName, HeaderValue, VARY,
    },
    web::Bytes,
};
use flate2::{Compress, Compression, FlushCompress, Status, read::GzDecoder};

/// In bytes. A smaller body fits into one packet.
const COMPRESSION_THRESHOLD: usize = 1024;

const GZIP: (HeaderName, HeaderValue) = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
const VARY_ON_ENCODING: (HeaderName, HeaderValue) =
    (VARY, HeaderValue::from_static("accept-encoding"));

/// Finishes a response with a body, which is compressed if it is large and the client prefers that.
pub(crate) fn respond(
    request: &HttpRequest,
    mut response: HttpResponseBuilder,
    body: Vec<u8>,
) -> HttpResponse {
    response.insert_header(VARY_ON_ENCODING);
    if body.len() > COMPRESSION_THRESHOLD && prefers_gzip(request) {
        return response.insert_header(GZIP).body(gzip(&body));
    }
    response.body(body)
}

/// Returns whether the client names gzip, and prefers it (RFC 9110, section 12.5.3); `*` names nothing. An invalid
/// header has no effect. A client that accepts neither encoding gets an uncompressed response.
fn prefers_gzip(request: &HttpRequest) -> bool {
    let encodings = [
        Encoding::Known(ContentEncoding::Gzip),
        Encoding::Known(ContentEncoding::Identity),
    ];
    let preferred = AcceptEncoding::parse(request)
        .ok()
        .and_then(|accepted| accepted.negotiate(encodings.iter()));
    preferred == Some(Encoding::Known(ContentEncoding::Gzip))
}

thread_local! {
    /// One encoder per worker: creating one takes half as long as compressing a page of 20 pets.
    static ENCODER: RefCell<Compress> = RefCell::new(Compress::new_gzip(Compression::fast(), WINDOW_BITS));
}

/// The largest window of gzip.
const WINDOW_BITS: u8 = 15;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    ENCODER.with_borrow_mut(|encoder| {
        encoder.reset();
        // More than the largest result, so that one call is enough.
        let mut gzipped = Vec::with_capacity(bytes.len() + bytes.len() / 8 + 64);
        let status = encoder.compress_vec(bytes, &mut gzipped, FlushCompress::Finish);
        assert_eq!(
            status.expect("every input can be compressed"),
            Status::StreamEnd
        );
        gzipped.shrink_to_fit();
        gzipped
    })
}

/// A file that is part of the program.
pub(crate) struct StaticFile {
    content_type: &'static str,
    gzipped: Bytes,
    /// Decompressed by the first request that does not accept gzip. Browsers accept it.
    plain: OnceLock<Bytes>,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, text: &str) -> Self {
        Self::from_gzip(content_type, gzip(text.as_bytes()))
    }

    pub(crate) fn from_gzip(content_type: &'static str, gzipped: impl Into<Bytes>) -> Self {
        Self {
            content_type,
            gzipped: gzipped.into(),
            plain: OnceLock::new(),
        }
    }

    /// Responds with 200 and the file in the encoding that the client prefers. It may change with the program, so
    /// caches must ask again.
    pub(crate) fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response
            .content_type(self.content_type)
            .insert_header(VARY_ON_ENCODING)
            .insert_header((CACHE_CONTROL, "no-cache"));
        if prefers_gzip(request) {
            return response.insert_header(GZIP).body(self.gzipped.clone());
        }
        response.body(self.plain.get_or_init(|| self.decompress()).clone())
    }

    fn decompress(&self) -> Bytes {
        let mut plain = Vec::with_capacity(self.gzipped.len() * 4);
        GzDecoder::new(&*self.gzipped)
            .read_to_end(&mut plain)
            .expect("a file of the program is valid gzip");
        plain.into()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{body::MessageBody, http::header::ACCEPT_ENCODING, test::TestRequest};

    use super::*;

    /// A request with one header line per value.
    fn accepting(values: &[&[u8]]) -> HttpRequest {
        let lines = values
            .iter()
            .map(|value| (ACCEPT_ENCODING, HeaderValue::from_bytes(value).unwrap()));
        lines
            .fold(TestRequest::default(), TestRequest::append_header)
            .to_http_request()
    }

    #[test]
    fn only_a_body_above_the_threshold_is_compressed_if_the_client_accepts_it() {
        let gzip = &[&b"gzip"[..]][..];
        for (accepted, bytes, is_compressed) in [
            (gzip, 0, false),
            (gzip, 1024, false),
            (gzip, 1025, true),
            (gzip, 100_000, true),
            (&[], 5000, false),
        ] {
            let plain = vec![b'x'; bytes];
            let response = respond(&accepting(accepted), HttpResponse::Ok(), plain.clone());

            let headers = response.headers();
            assert_eq!(
                headers.contains_key(CONTENT_ENCODING),
                is_compressed,
                "{bytes}"
            );
            assert_eq!(headers.get(VARY), Some(&VARY_ON_ENCODING.1));
            let body = response.into_body().try_into_bytes().expect("in memory");
            let mut read = body.to_vec();
            if is_compressed {
                assert!(body.len() < bytes);
                read.clear();
                GzDecoder::new(&body[..]).read_to_end(&mut read).unwrap();
            }
            assert_eq!(read, plain);
        }
    }

    #[test]
    fn gzip_is_used_if_the_client_prefers_it_and_an_invalid_item_or_a_header_that_is_not_ascii_is_ignored()
     {
        for value in [
            "gZip;Q=1",
            "gzip;q=0.001",
            "br;q=1.0, gzip;q=0.8, *;q=0.1",
            "gzip;q=0.6,identity;q=0.5",
            "gzip, identity",
            "identity;q=0, gzip;q=0.1",
            "br;q=9, gzip",
            ";;;,gzip",
            ",gzip",
            "gzip, ,",
            " ,,gzip,,br;q=0.1",
        ] {
            assert!(prefers_gzip(&accepting(&[value.as_bytes()])), "{value:?}");
        }
        for value in [
            "",
            "identity",
            "*;q=0.5",
            "br, deflate",
            "gzip;q=0, *",
            "gzip;q=0.5, identity;q=0.8",
            "identity;q=0, gzip;q=0",
            "gzip;q=-1",
        ] {
            assert!(!prefers_gzip(&accepting(&[value.as_bytes()])), "{value:?}");
        }
        assert!(prefers_gzip(&accepting(&[b"br", b"gzip"])));
        for values in [
            &[&b"gzip;q=0.5"[..], b"identity;q=0.8"][..],
            &[b"gzip, \xff"],
            &[b"gzip", b"\xff"],
            &["gz\u{ef}p".as_bytes()],
        ] {
            assert!(!prefers_gzip(&accepting(values)), "{values:?}");
        }
    }
}
