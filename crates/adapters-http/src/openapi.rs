//! The interface as an OpenAPI 3.1 document: `docs/openapi.json`, which is kept by hand (ADR 0018).
//!
//! Its tests hold it against the constants, the errors and the operations of the code, in both directions.
//! `scripts/check-contract` runs generated requests and generated clients.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::LazyLock;

use actix_web::{HttpRequest, HttpResponse};

use crate::compression::StaticFile;

/// The document as JSON.
pub const OPENAPI_DOCUMENT: &str = include_str!("../../../docs/openapi.json");

pub(crate) async fn serve(request: HttpRequest) -> HttpResponse {
    static DOCUMENT: LazyLock<StaticFile> =
        LazyLock::new(|| StaticFile::new("application/json", OPENAPI_DOCUMENT));
    DOCUMENT.respond(&request)
}
