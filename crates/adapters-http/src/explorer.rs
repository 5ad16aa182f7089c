//! The API explorer: the page at `/docs`.
//!
//! **Problem.** People want to read the interface and to send requests to it without installing anything.
//!
//! **Invariant.** The page loads its own files only, and sends requests and the API key to its own origin only. The
//! content security policy enforces both.
//!
//! **Proof.** `server/tests/api/explorer.rs`.

use std::sync::{Arc, LazyLock};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, LOCATION},
    web::{Bytes, Path},
};
use utoipa_swagger_ui::Config;

use crate::{compression::StaticFile, error::ApiError};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

static PAGE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::new(
        "text/html; charset=utf-8",
        include_str!("explorer/page.html"),
    )
});

static FILES: LazyLock<[(&str, StaticFile); 4]> = LazyLock::new(|| {
    let script = "text/javascript; charset=utf-8";
    let style = "text/css; charset=utf-8";
    [
        (
            "explorer.js",
            StaticFile::new(script, include_str!("explorer/explorer.js")),
        ),
        (
            "explorer.css",
            StaticFile::new(style, include_str!("explorer/explorer.css")),
        ),
        (
            "swagger-ui-bundle.js",
            StaticFile::from_gzip(script, swagger_ui_gzip("swagger-ui-bundle.js")),
        ),
        (
            "swagger-ui.css",
            StaticFile::from_gzip(style, swagger_ui_gzip("swagger-ui.css")),
        ),
    ]
});

/// Leads from `/` to the page.
pub(crate) async fn from_root() -> HttpResponse {
    redirect("docs")
}

/// Leads from `/docs/` to the page.
pub(crate) async fn from_folder() -> HttpResponse {
    redirect("../docs")
}

/// The location is relative to the URI of the request, so that it is valid behind any base path.
fn redirect(location: &'static str) -> HttpResponse {
    HttpResponse::Found()
        .insert_header((LOCATION, location))
        .finish()
}

pub(crate) async fn page(request: HttpRequest) -> HttpResponse {
    let mut response = PAGE.respond(&request);
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

pub(crate) async fn file(
    name: Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let (_, file) = FILES
        .iter()
        .find(|(file, _)| *file == *name)
        .ok_or(ApiError::RouteNotFound)?;
    let mut response = file.respond(&request);
    // For an hour.
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Ok(response)
}

/// Returns a file of Swagger UI, compressed with gzip.
fn swagger_ui_gzip(name: &str) -> Bytes {
    let file = utoipa_swagger_ui::serve(name, Arc::new(Config::from("")));
    let file = file.ok().flatten();
    let file = file.expect("Swagger UI contains the file");
    Bytes::from_owner(file.bytes)
}
