//! Access for pages of other origins (the CORS protocol of the Fetch standard).
//!
//! **Problem.** A browser lets a page of another origin use the interface only if the responses allow it.
//!
//! **Invariant.** The response to a preflight lists the allowed methods and headers, and needs no API key. Every other
//! response, errors included, names the origin that may read it. API keys are not cookies: credentials in the sense of
//! the protocol are never allowed. Without allowed origins, responses contain no CORS headers.
//!
//! **Proof.** The unit tests; `tests/http/cors.rs`; `server/tests/api/cors.rs` for every response and path.

use actix_cors::{Cors, CorsError};
use actix_web::{
    HttpResponse,
    body::{BoxBody, EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, LINK, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE},
    },
    middleware::Next,
};
use thiserror::Error;
use url::Url;

use crate::{
    middleware::request_id::X_REQUEST_ID,
    pets::{DEPRECATION, IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED, get::SUNSET},
    rate_limits::{RATE_LIMIT, RATE_LIMIT_POLICY},
};

/// Seconds for which a browser may cache the response to a preflight. Browsers limit it to two hours.
const MAX_AGE: usize = 60 * 60;

/// Headers that a page may read, besides `Content-Type` and the other headers that every page may read.
const EXPOSED_HEADERS: [HeaderName; 10] = [
    DEPRECATION,
    IDEMPOTENCY_REPLAYED,
    LINK,
    LOCATION,
    RATE_LIMIT,
    RATE_LIMIT_POLICY,
    RETRY_AFTER,
    SUNSET,
    WWW_AUTHENTICATE,
    X_REQUEST_ID,
];

/// Origins whose pages may use the interface, besides its own origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// Every origin.
    Any,
    /// These origins. If the list is empty, responses contain no CORS headers.
    These(Vec<String>),
}

/// These texts are not origins.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("must contain {}", .0.join("; must contain "))]
pub struct AllowedOriginsError(Vec<String>);

impl AllowedOrigins {
    /// Parses origins (RFC 6454), or a `*` alone: every origin.
    ///
    /// # Errors
    /// [`AllowedOriginsError`] with what is expected instead of each other text.
    pub fn parse(texts: &[String]) -> Result<Self, AllowedOriginsError> {
        if texts == ["*"] {
            return Ok(Self::Any);
        }
        let problems: Vec<_> = texts.iter().filter_map(|text| problem(text)).collect();
        if problems.is_empty() { Ok(Self::These(texts.to_vec())) } else { Err(AllowedOriginsError(problems)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::These(origins) if origins.is_empty())
    }

    pub(crate) fn cors(&self) -> Cors {
        let cors = Cors::default()
            .allowed_methods([Method::GET, Method::HEAD, Method::POST])
            .allowed_headers([AUTHORIZATION, CONTENT_TYPE, IDEMPOTENCY_KEY, X_REQUEST_ID])
            .expose_headers(EXPOSED_HEADERS)
            .max_age(MAX_AGE);
        match self {
            Self::Any => cors.allow_any_origin().send_wildcard(),
            Self::These(origins) => origins.iter().fold(cors, |cors, origin| cors.allowed_origin(origin)),
        }
    }
}

/// Turns the error for a refused preflight into a 200 without the headers that grant permission. Browsers check only
/// these headers.
pub(crate) async fn respond_to_refused_preflight<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, actix_web::Error> {
    let response = next.call(request).await?;
    let refused = response.response().error().is_some_and(|error| error.as_error::<CorsError>().is_some());
    if !refused {
        return Ok(response.map_into_left_body());
    }
    let refusal = HttpResponse::Ok()
        .insert_header((VARY, "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"))
        .finish();
    Ok(response.into_response(refusal).map_into_right_body())
}

/// Returns what is expected instead of a text, unless it is an origin as browsers write it: scheme, host and port.
fn problem(text: &str) -> Option<String> {
    let origin = Url::parse(text).ok().filter(is_web_origin).map(|url| url.origin().ascii_serialization());
    match origin {
        Some(written) if written == text => None,
        Some(written) => Some(format!("{written:?}, as browsers send it, not {text:?}")),
        None => Some(format!("origins such as https://shop.example, not {text:?}")),
    }
}

/// Returns whether a page can have this origin. A URL can have another scheme, or a host such as `*.example` or
/// `${host}`.
fn is_web_origin(url: &Url) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[:]".contains(&byte);
    matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| host.bytes().all(is_host_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port_as_browsers_write_them() {
        for text in [
            "https://shop.example",
            "http://shop.example",
            "https://shop.example:80",
            "http://localhost:3000",
            "http://[::1]:8000",
            "https://xn--bcher-kva.example",
            "https://a-b.c_d.example",
            "https://shop.example.",
        ] {
            assert_eq!(problem(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_error_for_another_form_contains_the_form_of_browsers() {
        for (text, written) in [
            ("https://shop.example/", "https://shop.example"),
            ("https://shop.example:443", "https://shop.example"),
            ("http://shop.example:08080", "http://shop.example:8080"),
            ("https://Shop.Example", "https://shop.example"),
            ("https://user:secret@shop.example", "https://shop.example"),
            ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
            ("http://[0:0::1]", "http://[::1]"),
            (" https://shop.example", "https://shop.example"),
        ] {
            let expected = format!("{written:?}, as browsers send it, not {text:?}");
            assert_eq!(problem(text), Some(expected));
        }
    }

    #[test]
    fn a_text_without_a_web_origin_or_with_an_invalid_host_is_refused() {
        for text in [
            "",
            "*",
            "null",
            "shop.example",
            "shop.example:8080",
            "file:///pages",
            "ws://shop.example",
            "https://*",
            "https://*.shop.example",
            "https://${host}",
            "https://\"shop\"",
        ] {
            assert_eq!(problem(text), Some(format!("origins such as https://shop.example, not {text:?}")));
        }
    }
}
