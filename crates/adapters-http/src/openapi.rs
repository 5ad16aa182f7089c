//! The interface as an OpenAPI 3.1 document: `docs/openapi.json`, which is kept by hand (ADR 0018).
//!
//! Its tests hold it against the constants, the errors and the operations of the code, in both directions.
//! `scripts/check-contract` runs generated requests and generated clients.

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;

use actix_web::{HttpRequest, HttpResponse, web::Data};

use crate::{compression::StaticFile, public_url::PublicUrl};

/// The document as JSON. Its server is a relative reference.
pub const OPENAPI_DOCUMENT: &str = include_str!("../../../docs/openapi.json");

const SERVER: &str = r#""url": "v1""#;

/// Returns the document with this server.
pub fn openapi_document(server: Option<&PublicUrl>) -> Cow<'static, str> {
    match server {
        Some(url) => OPENAPI_DOCUMENT
            .replacen(SERVER, &format!(r#""url": "{url}""#), 1)
            .into(),
        None => OPENAPI_DOCUMENT.into(),
    }
}

/// Returns the document with this server as a file.
pub(crate) fn file(server: Option<&PublicUrl>) -> StaticFile {
    StaticFile::new("application/json", &openapi_document(server))
}

pub(crate) async fn serve(document: Data<StaticFile>, request: HttpRequest) -> HttpResponse {
    document.respond(&request)
}
