use std::{io::Read, sync::OnceLock};

use actix_web::{HttpRequest, HttpResponse, body::MessageBody, web::Bytes};
use flate2::read::GzDecoder;

use crate::compression::{GZIP, VARIES, gzip, is_worth_it, prefers_gzip};

/// A file that is part of the program.
pub(crate) struct StaticFile {
    content_type: &'static str,
    /// Where that is worth it.
    gzipped: Option<Bytes>,
    /// Of a file that comes compressed only once somebody wants it so, which browsers do not.
    plain: OnceLock<Bytes>,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, text: impl Into<Bytes>) -> Self {
        let plain = text.into();
        let gzipped = is_worth_it(plain.size()).then(|| gzip(&plain).into());
        Self { content_type, gzipped, plain: plain.into() }
    }

    /// Of a file that comes compressed.
    pub(crate) fn from_gzip(content_type: &'static str, gzipped: impl Into<Bytes>) -> Self {
        Self { content_type, gzipped: Some(gzipped.into()), plain: OnceLock::new() }
    }

    /// `200` with the file in the form that the client prefers.
    pub(crate) fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.content_type(self.content_type).insert_header(VARIES);
        match &self.gzipped {
            Some(gzipped) if prefers_gzip(request) => response.insert_header(GZIP).body(gzipped.clone()),
            _ => response.body(self.plain.get_or_init(|| self.unpacked()).clone()),
        }
    }

    fn unpacked(&self) -> Bytes {
        let gzipped = self.gzipped.as_deref().unwrap_or_default();
        let mut plain = Vec::with_capacity(gzipped.len() * 4);
        GzDecoder::new(gzipped).read_to_end(&mut plain).expect("a file of the program is whole");
        plain.into()
    }
}
