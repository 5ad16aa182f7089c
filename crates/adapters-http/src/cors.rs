//! Access for pages of other origins (the CORS protocol of the Fetch standard).
//!
//! **Problem.** A browser lets a page of another origin use the interface only if the responses allow it.
//!
//! **Invariant.** The response to a preflight lists the allowed methods and headers, and needs no API key. Every other
//! response, errors included, names the origin that may read it. API keys are not cookies: credentials in the sense of
//! the protocol are never allowed. Without allowed origins, responses contain no CORS headers.
//!
//! **Proof.** The tests of [`origin`]; `server/tests/api/cors.rs` over sockets.

mod origin;

use actix_cors::{Cors, CorsError};
use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, LINK, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE},
    },
    middleware::Next,
};

pub use self::origin::{Origin, OriginError};
use crate::{
    middleware::{
        deprecation::{DEPRECATION, SUNSET},
        request_id::X_REQUEST_ID,
    },
    pets::{IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED},
    rate_limits::{RATE_LIMIT, RATE_LIMIT_POLICY},
};

/// Seconds for which a browser may cache the response to a preflight. Browsers limit it to two hours.
const MAX_AGE: usize = 60 * 60;

/// Methods and headers that a page may send.
const METHODS: [Method; 3] = [Method::GET, Method::HEAD, Method::POST];
const REQUEST_HEADERS: [HeaderName; 4] = [AUTHORIZATION, CONTENT_TYPE, IDEMPOTENCY_KEY, X_REQUEST_ID];

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
    These(Vec<Origin>),
}

impl AllowedOrigins {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::These(origins) if origins.is_empty())
    }

    pub(crate) fn cors(&self) -> Cors {
        let cors = Cors::default()
            .allowed_methods(METHODS)
            .allowed_headers(REQUEST_HEADERS)
            .expose_headers(EXPOSED_HEADERS)
            .max_age(MAX_AGE);
        match self {
            Self::Any => cors.allow_any_origin().send_wildcard(),
            Self::These(origins) => origins.iter().fold(cors, |cors, origin| cors.allowed_origin(origin.as_str())),
        }
    }
}

/// Turns the error for a refused preflight into a 200 without the headers that grant permission. Browsers check only
/// these headers.
pub(crate) async fn respond_to_refused_preflight<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_list_allows_no_origin() {
        assert!(AllowedOrigins::These(Vec::new()).is_empty());
        assert!(!AllowedOrigins::These(vec!["https://shop.example".parse().unwrap()]).is_empty());
        assert!(!AllowedOrigins::Any.is_empty());
    }
}
