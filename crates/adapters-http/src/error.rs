//! Every response that is not a success. Only this module decides its status, code, header and message.
//!
//! The message about an invalid request may contain text made for the client: one problem for each member, parameter or
//! header. The message of a 5xx is fixed: its cause is a source, which only the request log reads.

mod exceeded_limit;
mod from_use_cases;
#[cfg(test)]
pub(crate) mod tests;

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{
            ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, HeaderName, HeaderValue, RETRY_AFTER,
            WWW_AUTHENTICATE,
        },
    },
};
use animal_store_app::{Scope, ports::Cause};
use serde::{Serialize, Serializer};
use thiserror::Error;

pub(crate) use self::exceeded_limit::ExceededLimit;

/// Value of `Content-Type`.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The text of an error is the message for the client.
#[derive(Debug, Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    InvalidBody(String),
    #[error("{0}")]
    InvalidQuery(String),
    #[error("{0}")]
    InvalidHeader(String),
    #[error("the request is not valid HTTP")]
    MalformedRequest,
    #[error("an API key is required: Authorization: Bearer <API_KEY>")]
    MissingApiKey,
    #[error("the Authorization header must be sent once, in the form: Bearer <API_KEY>")]
    MalformedApiKey,
    #[error("the API key is not valid")]
    UnknownApiKey,
    #[error("the API key does not have the `{}` scope", .0.as_str())]
    InsufficientScope(Scope),
    #[error("no pet has this id")]
    PetNotFound,
    #[error("path not found")]
    RouteNotFound,
    #[error("method not allowed; allowed: {0}")]
    MethodNotAllowed(&'static str),
    #[error("the request body did not arrive in time")]
    RequestTimeout,
    #[error("the request body must have at most {0} bytes")]
    PayloadTooLarge(usize),
    #[error("the request body must be JSON in UTF-8 (Content-Type: application/json), not {0}")]
    UnsupportedContentType(String),
    #[error("the request body must not be encoded, but its Content-Encoding is {0}")]
    UnsupportedContentEncoding(String),
    #[error("an earlier request with this Idempotency-Key is in flight; retry later")]
    IdempotencyConflict,
    #[error("this Idempotency-Key was used for another pet")]
    IdempotencyMismatch,
    #[error("this operation was removed; use listPets")]
    Gone,
    /// The API key can send a request again within a second.
    #[error("too many requests with this API key; retry later")]
    RateLimited,
    /// Contains the seconds until the address can send its next request.
    #[error("too many failed authentications from this address; retry later")]
    TooManyAuthFailures(u64),
    #[error("internal error")]
    Internal(#[source] Cause),
    #[error("the service is unavailable; retry later")]
    Unavailable(#[source] Cause),
    #[error("the service is overloaded; retry later")]
    Overloaded(ExceededLimit),
    #[error("the pet may have been added; check before you retry without an Idempotency-Key")]
    OutcomeUnknown(#[source] Cause),
}

/// The Error body of the interface.
#[derive(Serialize)]
pub(crate) struct ErrorResponse<'a> {
    pub(crate) code: &'static str,
    #[serde(serialize_with = "as_text")]
    message: &'a ApiError,
    pub(crate) status: u16,
}

fn as_text<S: Serializer>(error: &ApiError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error)
}

impl ApiError {
    /// Returns the error of a response.
    pub(crate) fn of<B>(response: &HttpResponse<B>) -> Option<&Self> {
        response.error()?.as_error()
    }

    /// Returns the limit because of which the request is refused.
    pub(crate) fn exceeded_limit(&self) -> Option<ExceededLimit> {
        match self {
            Self::Overloaded(limit) => Some(*limit),
            Self::RateLimited => Some(ExceededLimit::RateLimit),
            Self::TooManyAuthFailures(_) => Some(ExceededLimit::AuthFailures),
            _ => None,
        }
    }

    /// The table of all errors.
    pub(crate) fn response(&self) -> ErrorResponse<'_> {
        let (status, code) = match self {
            Self::InvalidBody(_) => (400, "invalid_body"),
            Self::InvalidQuery(_) => (400, "invalid_query"),
            Self::InvalidHeader(_) => (400, "invalid_header"),
            Self::MalformedRequest => (400, "malformed_request"),
            Self::MissingApiKey => (401, "missing_api_key"),
            Self::MalformedApiKey | Self::UnknownApiKey => (401, "invalid_api_key"),
            Self::InsufficientScope(_) => (403, "insufficient_scope"),
            Self::PetNotFound => (404, "pet_not_found"),
            Self::RouteNotFound => (404, "route_not_found"),
            Self::MethodNotAllowed(_) => (405, "method_not_allowed"),
            Self::RequestTimeout => (408, "request_timeout"),
            Self::IdempotencyConflict => (409, "idempotency_conflict"),
            Self::Gone => (410, "gone"),
            Self::PayloadTooLarge(_) => (413, "payload_too_large"),
            Self::UnsupportedContentType(_) | Self::UnsupportedContentEncoding(_) => {
                (415, "unsupported_media_type")
            }
            Self::IdempotencyMismatch => (422, "idempotency_mismatch"),
            Self::RateLimited | Self::TooManyAuthFailures(_) => (429, "rate_limited"),
            Self::Internal(_) => (500, "internal_error"),
            Self::Unavailable(_) => (503, "unavailable"),
            Self::Overloaded(_) => (503, "overloaded"),
            Self::OutcomeUnknown(_) => (503, "outcome_unknown"),
        };
        ErrorResponse {
            code,
            message: self,
            status,
        }
    }

    /// The header that a client needs to correct or retry the request. Without Retry-After if the outcome is unknown,
    /// because a retry could add a second pet.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self {
            Self::MissingApiKey => (WWW_AUTHENTICATE, r#"Bearer realm="animal-store""#),
            Self::MalformedApiKey => (
                WWW_AUTHENTICATE,
                r#"Bearer realm="animal-store", error="invalid_request""#,
            ),
            Self::UnknownApiKey => (
                WWW_AUTHENTICATE,
                r#"Bearer realm="animal-store", error="invalid_token""#,
            ),
            Self::InsufficientScope(scope) => {
                let challenge = format!(
                    r#"Bearer realm="animal-store", error="insufficient_scope", scope="{}""#,
                    scope.as_str()
                );
                return Some((
                    WWW_AUTHENTICATE,
                    HeaderValue::try_from(challenge).expect("ASCII"),
                ));
            }
            Self::MethodNotAllowed(methods) => (ALLOW, *methods),
            Self::UnsupportedContentEncoding(_) => (ACCEPT_ENCODING, "identity"),
            Self::TooManyAuthFailures(seconds) => return Some((RETRY_AFTER, (*seconds).into())),
            Self::IdempotencyConflict
            | Self::RateLimited
            | Self::Unavailable(_)
            | Self::Overloaded(_) => (RETRY_AFTER, "1"),
            _ => return None,
        };
        Some((name, HeaderValue::from_static(value)))
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.response().status).expect("the table contains valid statuses")
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        let mut response = HttpResponse::build(status);
        response.content_type(JSON);
        if let Some(header) = self.header() {
            response.insert_header(header);
        }
        if status.is_server_error() {
            // The error may occur before the routes under `/v1`, which set this header on their responses.
            response.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
        }
        response.body(serde_json::to_vec(&self.response()).expect("texts and a number"))
    }
}
