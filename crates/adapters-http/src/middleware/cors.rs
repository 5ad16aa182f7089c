//! Access for pages of other origins (the CORS protocol of the Fetch standard).
//!
//! **Problem.** A browser lets a page of another origin use the interface only if the responses allow it.
//!
//! **Invariant.** The response to a preflight lists the allowed methods and headers, and needs no API key. Every other
//! response, errors included, names the origin that may read it. API keys are not cookies: credentials in the sense of
//! the protocol are never allowed. Without allowed origins, responses contain no CORS headers.
//!
//! **Proof.** The unit tests of `origins`; `tests/http/cors.rs`; `server/tests/api/cors.rs` for every response and path.

use std::future::ready;

use actix_web::{
    Error, HttpResponse,
    dev::{Service, ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
            ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, VARY,
        },
    },
};
use futures_util::{TryFutureExt, future::Either};

use crate::{origins::AllowedOrigins, pets::METHODS};

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
