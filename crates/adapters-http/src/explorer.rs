//! `/docs`: the interface for people, to read and to try. Nothing in it comes from another place.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, LOCATION},
    web::{Bytes, Path},
};
use utoipa_swagger_ui::Config;

use crate::{error::ApiError, static_file::StaticFile};

/// What the page may do: show its own files, run its own script, send requests to where it came from.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// How long a browser may keep the files of the page.
const AN_HOUR: HeaderValue = HeaderValue::from_static("max-age=3600");

static PAGE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::new("text/html; charset=utf-8", include_str!("explorer/page.html")));

static FILES: LazyLock<[(&str, StaticFile); 4]> = LazyLock::new(|| {
    let (script, style) = ("text/javascript; charset=utf-8", "text/css; charset=utf-8");
    [
        ("explorer.js", StaticFile::new(script, include_str!("explorer/explorer.js"))),
        ("explorer.css", StaticFile::new(style, include_str!("explorer/explorer.css"))),
        ("swagger-ui-bundle.js", StaticFile::from_gzip(script, of_swagger_ui("swagger-ui-bundle.js"))),
        ("swagger-ui.css", StaticFile::from_gzip(style, of_swagger_ui("swagger-ui.css"))),
    ]
});

/// `GET /`
pub(crate) async fn redirect() -> HttpResponse {
    // Relative to the request's own URI, so that it holds behind any base path.
    HttpResponse::Found().insert_header((LOCATION, "docs")).finish()
}

/// `GET /docs`
pub(crate) async fn page(request: HttpRequest) -> HttpResponse {
    let mut response = PAGE.answer(&request);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// `GET /docs/{file}`
pub(crate) async fn file(name: Path<String>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (_, file) = FILES.iter().find(|(known, _)| *known == *name).ok_or(ApiError::RouteNotFound)?;
    let mut response = file.answer(&request);
    response.headers_mut().insert(CACHE_CONTROL, AN_HOUR);
    Ok(response)
}

/// A file of Swagger UI, compressed.
fn of_swagger_ui(name: &str) -> Bytes {
    let file = utoipa_swagger_ui::serve(name, Arc::new(Config::from("")));
    match file.ok().flatten().expect("Swagger UI has it").bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}
