//! Access for pages of other origins (the CORS protocol of the Fetch standard).
//!
//! **Problem.** A browser lets a page of another origin use the interface only if the responses allow it.
//!
//! **Invariant.** The response to a preflight lists the allowed methods and headers, and needs no API key. Every other
//! response, errors included, names the origin that may read it. API keys are not cookies: credentials in the sense of
//! the protocol are never allowed. Without allowed origins, responses contain no CORS headers.
//!
//! **Proof.** The unit tests; `tests/http/cors.rs`; `server/tests/api/cors.rs` for every response and path.

use std::future::ready;

use actix_web::{
    Error, HttpResponse,
    dev::{Service, ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
            ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN, VARY,
        },
    },
};
use futures_util::{TryFutureExt, future::Either};
use thiserror::Error;
use url::Url;

use crate::pets::METHODS;

/// Headers that a page may send: those of the interface, and those of traces.
const HEADERS: &str =
    "authorization, baggage, content-type, idempotency-key, traceparent, tracestate, x-request-id";

/// Headers that a page may read, besides `Content-Type` and the other headers that every page may read.
const EXPOSED_HEADERS: &str = "deprecation, idempotency-replayed, link, location, ratelimit, ratelimit-policy, \
                               retry-after, sunset, www-authenticate, x-request-id";

/// What responses depend on, for caches.
const VARIES_BY: &str = "Origin, Access-Control-Request-Method";

/// Seconds for which a browser may cache the response to a preflight. Browsers limit it to two hours.
const MAX_AGE: &str = "3600";

/// Origins whose pages may use the interface, besides its own origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// Every origin.
    Any,
    /// These origins.
    These(Vec<String>),
}

/// These texts are not origins.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("must contain {}", .0.join("; must contain "))]
pub struct AllowedOriginsError(Vec<String>);

impl AllowedOrigins {
    /// Parses origins (RFC 6454), or a `*` alone: every origin. `None`: there are none.
    ///
    /// # Errors
    /// [`AllowedOriginsError`] with what is expected instead of each other text.
    pub fn parse(texts: &[String]) -> Result<Option<Self>, AllowedOriginsError> {
        if texts == ["*"] {
            return Ok(Some(Self::Any));
        }
        let problems: Vec<_> = texts.iter().filter_map(|text| problem(text)).collect();
        if problems.is_empty() {
            Ok((!texts.is_empty()).then(|| Self::These(texts.to_vec())))
        } else {
            Err(AllowedOriginsError(problems))
        }
    }

    /// Returns the value of `Access-Control-Allow-Origin`. `None`: the origin may not read the response.
    fn allow(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::These(origins) => origins
                .iter()
                .any(|allowed| origin == allowed)
                .then(|| origin.clone()),
        }
    }
}

/// Responds to a preflight, or adds the headers of the protocol to the response of the service. `None`: does neither.
pub(crate) fn apply<S>(
    origins: Option<&AllowedOrigins>,
    request: ServiceRequest,
    service: &S,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    let Some(origins) = origins else {
        return Either::Left(service.call(request));
    };
    let allowed = origins.allow(request.headers());
    if is_preflight(&request) {
        return Either::Right(Either::Left(ready(Ok(respond_to_preflight(
            request, allowed,
        )))));
    }
    let response = service.call(request).map_ok(|mut response| {
        let headers = response.headers_mut();
        if let Some(origin) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED_HEADERS),
        );
        let vary = headers.get(VARY).and_then(|vary| vary.to_str().ok());
        let vary = vary.map_or_else(
            || VARIES_BY.to_owned(),
            |others| format!("{others}, {VARIES_BY}"),
        );
        headers.insert(VARY, HeaderValue::try_from(vary).expect("ASCII"));
        response
    });
    Either::Right(Either::Right(response))
}

fn is_preflight(request: &ServiceRequest) -> bool {
    let method = request.headers().get(ACCESS_CONTROL_REQUEST_METHOD);
    request.method() == Method::OPTIONS
        && method.is_some_and(|method| Method::from_bytes(method.as_bytes()).is_ok())
}

/// Grants an allowed origin the methods and the headers of the interface, whatever the page asks for: the browser
/// compares, and names what is missing. Without these headers, it says that the origin is not allowed.
fn respond_to_preflight(request: ServiceRequest, allowed: Option<HeaderValue>) -> ServiceResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((VARY, VARIES_BY));
    if let Some(origin) = allowed {
        response.insert_header((ACCESS_CONTROL_ALLOW_ORIGIN, origin));
        response.insert_header((ACCESS_CONTROL_ALLOW_METHODS, METHODS));
        response.insert_header((ACCESS_CONTROL_ALLOW_HEADERS, HEADERS));
        response.insert_header((ACCESS_CONTROL_MAX_AGE, MAX_AGE));
    }
    request.into_response(response.finish())
}

/// Returns what is expected instead of a text, unless it is an origin as browsers write it: scheme, host and port.
fn problem(text: &str) -> Option<String> {
    let origin = Url::parse(text)
        .ok()
        .filter(is_web_origin)
        .map(|url| url.origin().ascii_serialization());
    match origin {
        Some(written) if written == text => None,
        Some(written) => Some(format!("{written:?}, as browsers send it, not {text:?}")),
        None => Some(format!(
            "origins such as https://shop.example, not {text:?}"
        )),
    }
}

/// Returns whether a page can have this origin. A URL can have another scheme, or a host such as `*.example` or
/// `${host}`.
pub(crate) fn is_web_origin(url: &Url) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[:]".contains(&byte);
    matches!(url.scheme(), "http" | "https")
        && url
            .host_str()
            .is_some_and(|host| host.bytes().all(is_host_byte))
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
            (
                "https://b\u{fc}cher.example",
                "https://xn--bcher-kva.example",
            ),
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
            assert_eq!(
                problem(text),
                Some(format!(
                    "origins such as https://shop.example, not {text:?}"
                ))
            );
        }
    }
}
