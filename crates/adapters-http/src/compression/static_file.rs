use std::{io::Read, sync::OnceLock};

use actix_web::{HttpRequest, HttpResponse, body::MessageBody, web::Bytes};
use flate2::read::GzDecoder;

use super::{GZIP, VARY_ON_ENCODING, exceeds_threshold, gzip, prefers_gzip};

/// A file that is part of the program.
pub(crate) struct StaticFile {
    content_type: &'static str,
    /// Absent if the file is not larger than the threshold.
    gzipped: Option<Bytes>,
    /// Decompressed by the first request that does not accept gzip. Browsers accept it.
    plain: OnceLock<Bytes>,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, text: impl Into<Bytes>) -> Self {
        let plain = text.into();
        let gzipped = exceeds_threshold(plain.size()).then(|| gzip(&plain).into());
        Self { content_type, gzipped, plain: plain.into() }
    }

    pub(crate) fn from_gzip(content_type: &'static str, gzipped: impl Into<Bytes>) -> Self {
        Self { content_type, gzipped: Some(gzipped.into()), plain: OnceLock::new() }
    }

    /// Responds with 200 and the file in the encoding that the client prefers.
    pub(crate) fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.content_type(self.content_type).insert_header(VARY_ON_ENCODING);
        match &self.gzipped {
            Some(gzipped) if prefers_gzip(request) => response.insert_header(GZIP).body(gzipped.clone()),
            _ => response.body(self.plain.get_or_init(|| self.decompress()).clone()),
        }
    }

    fn decompress(&self) -> Bytes {
        let gzipped = self.gzipped.as_deref().unwrap_or_default();
        let mut plain = Vec::with_capacity(gzipped.len() * 4);
        GzDecoder::new(gzipped).read_to_end(&mut plain).expect("a file of the program is valid gzip");
        plain.into()
    }
}
