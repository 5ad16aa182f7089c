//! Which pages of other origins may use the interface (the CORS protocol of the Fetch standard).
//!
//! An answer to a preflight says what is allowed and is given before anything else is looked at; every other answer
//! says who may read it. API keys are not cookies: credentials in the sense of that protocol are never allowed.

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
    deprecation::{DEPRECATION, SUNSET},
    pets::{IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED},
    request_id::X_REQUEST_ID,
};

/// In seconds: browsers keep what a preflight allowed for up to two hours.
const MAX_AGE: usize = 60 * 60;

/// What a page may send.
const METHODS: [Method; 3] = [Method::GET, Method::HEAD, Method::POST];
const REQUEST_HEADERS: [HeaderName; 4] = [AUTHORIZATION, CONTENT_TYPE, IDEMPOTENCY_KEY, X_REQUEST_ID];

/// What a page may read besides `Content-Type` and the like.
const EXPOSED_HEADERS: [HeaderName; 8] =
    [DEPRECATION, IDEMPOTENCY_REPLAYED, LINK, LOCATION, RETRY_AFTER, SUNSET, WWW_AUTHENTICATE, X_REQUEST_ID];

/// The origins whose pages may use the interface, besides its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// Every one.
    Any,
    /// These, and with an empty list none: answers say nothing of origins then.
    These(Vec<Origin>),
}

impl AllowedOrigins {
    /// Whether any page may use the interface.
    pub(crate) fn are_some(&self) -> bool {
        !matches!(self, Self::These(origins) if origins.is_empty())
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

/// A preflight that is refused is answered like any other, only without permission: that is what browsers look at.
pub(crate) async fn answer_refusals<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let response = next.call(request).await?;
    let refused = response.response().error().is_some_and(|error| error.as_error::<CorsError>().is_some());
    if !refused {
        return Ok(response.map_into_left_body());
    }
    let answer = HttpResponse::Ok()
        .insert_header((VARY, "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"))
        .finish();
    Ok(response.into_response(answer).map_into_right_body())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_no_origin_at_all() {
        assert!(!AllowedOrigins::These(Vec::new()).are_some());
        assert!(AllowedOrigins::These(vec!["https://shop.example".parse().unwrap()]).are_some());
        assert!(AllowedOrigins::Any.are_some());
    }
}
