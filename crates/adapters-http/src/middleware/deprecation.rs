//! Headers of every response of `getPet`: RFC 9745 and RFC 8594.

use actix_web::{
    http::header::{HeaderName, LINK},
    middleware::DefaultHeaders,
};

pub(crate) const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
pub(crate) const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// 2026-01-01T00:00:00Z
pub(crate) const DEPRECATED_SINCE: &str = "@1767225600";
pub(crate) const REMOVED_ON: &str = "Thu, 05 Dec 2030 00:00:00 GMT";
pub(crate) const SUCCESSOR: &str = r#"<../pets>; rel="successor-version""#;

pub(crate) fn headers() -> DefaultHeaders {
    DefaultHeaders::new().add((DEPRECATION, DEPRECATED_SINCE)).add((SUNSET, REMOVED_ON)).add((LINK, SUCCESSOR))
}
