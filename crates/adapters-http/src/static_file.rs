use std::io::Read;

use actix_web::{HttpRequest, HttpResponse, body::MessageBody, web::Bytes};
use flate2::read::GzDecoder;

use crate::compression::{GZIP, VARIES, gzip, is_worth_it, prefers_gzip};

/// A file that is part of the program, as it is and compressed.
pub(crate) struct StaticFile {
    content_type: &'static str,
    plain: Bytes,
    gzipped: Bytes,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, text: impl Into<Bytes>) -> Self {
        let plain = text.into();
        let gzipped = gzip(&plain).into();
        Self { content_type, plain, gzipped }
    }

    /// From what is compressed already.
    pub(crate) fn from_gzip(content_type: &'static str, gzipped: impl Into<Bytes>) -> Self {
        let gzipped = gzipped.into();
        let mut plain = Vec::new();
        GzDecoder::new(&*gzipped).read_to_end(&mut plain).expect("a file of the program is whole");
        Self { content_type, plain: plain.into(), gzipped }
    }

    /// `200` with the file in the form that the client prefers.
    pub(crate) fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.content_type(self.content_type).insert_header(VARIES);
        if is_worth_it(self.plain.size()) && prefers_gzip(request) {
            response.insert_header(GZIP).body(self.gzipped.clone())
        } else {
            response.body(self.plain.clone())
        }
    }
}
