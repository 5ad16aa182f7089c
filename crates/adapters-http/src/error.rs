//! Every response that is not a success. Only this module decides its status, code, header and message.
//!
//! The message about an invalid request may contain text made for the client ([`Problems`]). The message of a 5xx is
//! fixed: its cause stays beside the response, and only the request log reads it.

mod from_use_cases;
#[cfg(test)]
pub(crate) mod tests;

use std::{borrow::Cow, fmt};

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
    },
};
use animal_store_app::{Scope, ports::Cause};
use serde::Serialize;
use thiserror::Error;

use crate::metrics::Shed;

/// Value of `Content-Type`.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Debug, Error)]
#[error("{}", self.response().code)]
pub(crate) enum ApiError {
    InvalidBody(Problems),
    InvalidQuery(Problems),
    InvalidHeader(Problems),
    MalformedRequest,
    MissingApiKey,
    /// The `Authorization` header has the wrong form.
    MalformedApiKey,
    /// No valid API key has this token.
    UnknownApiKey,
    /// The API key does not have this scope.
    InsufficientScope(Scope),
    PetNotFound,
    RouteNotFound,
    /// The allowed methods.
    MethodNotAllowed(&'static str),
    RequestTimeout,
    /// The maximum size of a body in bytes.
    PayloadTooLarge(usize),
    UnsupportedContentType,
    UnsupportedContentEncoding,
    /// An earlier request with the same idempotency key is in flight.
    IdempotencyConflict,
    /// The idempotency key was used for another pet.
    IdempotencyMismatch,
    /// The operation was removed.
    Gone,
    /// The API key has sent too many requests. It can send one again within a second.
    RateLimited,
    /// The address of the client has failed to authenticate too often. Contains the seconds until its next request.
    TooManyAuthFailures(u64),
    Internal(#[source] Cause),
    Unavailable(#[source] Cause),
    Overloaded(Shed),
    OutcomeUnknown(#[source] Cause),
}

/// Problems of a request, in text for the client: one entry per member, parameter or header.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }

    pub(crate) fn push(&mut self, name: &str, problem: &str) {
        self.0.push(format!("{name} {problem}"));
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

/// The response to an error. It serialises to the Error body of the interface.
#[derive(Serialize)]
pub(crate) struct ErrorResponse {
    pub(crate) code: &'static str,
    message: Cow<'static, str>,
    pub(crate) status: u16,
    /// Header that a client needs to correct or retry the request.
    #[serde(skip)]
    pub(crate) header: Option<(HeaderName, Cow<'static, str>)>,
    /// The response in JSON if it is fixed.
    #[serde(skip)]
    json: Option<&'static str>,
}

/// Creates an error with a fixed message, and its JSON when it is compiled: a refused request should cost little. Every
/// 5xx has a fixed message, so that no cause gets into a message.
macro_rules! fixed {
    ($status:literal, $code:literal, $message:literal) => {
        ErrorResponse {
            code: $code,
            message: Cow::Borrowed($message),
            status: $status,
            header: None,
            json: Some(concat!(r#"{"code":""#, $code, r#"","message":""#, $message, r#"","status":"#, $status, "}")),
        }
    };
}

/// Creates an error of the client, with a message about its request.
const fn client_error(status: u16, code: &'static str, message: String) -> ErrorResponse {
    ErrorResponse { code, message: Cow::Owned(message), status, header: None, json: None }
}

impl ErrorResponse {
    fn with(self, name: HeaderName, value: impl Into<Cow<'static, str>>) -> Self {
        Self { header: Some((name, value.into())), ..self }
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).expect("the table contains valid statuses")
    }
}

impl ApiError {
    /// Returns the limit because of which the request is refused.
    pub(crate) fn shed(&self) -> Option<Shed> {
        match self {
            Self::Overloaded(shed) => Some(*shed),
            Self::RateLimited => Some(Shed::RateLimit),
            Self::TooManyAuthFailures(_) => Some(Shed::AuthFailures),
            _ => None,
        }
    }

    /// The table of all errors.
    pub(crate) fn response(&self) -> ErrorResponse {
        match self {
            Self::InvalidBody(problems) => client_error(400, "invalid_body", problems.to_string()),
            Self::InvalidQuery(problems) => client_error(400, "invalid_query", problems.to_string()),
            Self::InvalidHeader(problems) => client_error(400, "invalid_header", problems.to_string()),
            Self::MalformedRequest => fixed!(400, "malformed_request", "the request is not valid HTTP"),
            Self::MissingApiKey => {
                fixed!(401, "missing_api_key", "an API key is required: Authorization: Bearer <API_KEY>")
                    .with(WWW_AUTHENTICATE, r#"Bearer realm="animal-store""#)
            }
            Self::MalformedApiKey => fixed!(
                401,
                "invalid_api_key",
                "the Authorization header must be sent once, in the form: Bearer <API_KEY>"
            )
            .with(WWW_AUTHENTICATE, r#"Bearer realm="animal-store", error="invalid_request""#),
            Self::UnknownApiKey => fixed!(401, "invalid_api_key", "the API key is not valid")
                .with(WWW_AUTHENTICATE, r#"Bearer realm="animal-store", error="invalid_token""#),
            Self::InsufficientScope(Scope::Read) => {
                fixed!(403, "insufficient_scope", "the API key does not have the `read` scope")
                    .with(WWW_AUTHENTICATE, r#"Bearer realm="animal-store", error="insufficient_scope", scope="read""#)
            }
            Self::InsufficientScope(Scope::Write) => {
                fixed!(403, "insufficient_scope", "the API key does not have the `write` scope")
                    .with(WWW_AUTHENTICATE, r#"Bearer realm="animal-store", error="insufficient_scope", scope="write""#)
            }
            Self::PetNotFound => fixed!(404, "pet_not_found", "no pet has this id"),
            Self::RouteNotFound => fixed!(404, "route_not_found", "path not found"),
            Self::MethodNotAllowed(methods) => {
                client_error(405, "method_not_allowed", format!("method not allowed; allowed: {methods}"))
                    .with(ALLOW, *methods)
            }
            Self::RequestTimeout => fixed!(408, "request_timeout", "the request body did not arrive in time"),
            Self::IdempotencyConflict => fixed!(
                409,
                "idempotency_conflict",
                "an earlier request with this Idempotency-Key is in flight; retry later"
            )
            .with(RETRY_AFTER, "1"),
            Self::Gone => fixed!(410, "gone", "this operation was removed; use listPets"),
            Self::PayloadTooLarge(bytes) => {
                client_error(413, "payload_too_large", format!("the request body must have at most {bytes} bytes"))
            }
            Self::UnsupportedContentType => {
                fixed!(
                    415,
                    "unsupported_media_type",
                    "the request body must be JSON in UTF-8: Content-Type: application/json"
                )
            }
            Self::UnsupportedContentEncoding => fixed!(
                415,
                "unsupported_media_type",
                "the request body must not be encoded: Content-Encoding: identity"
            )
            .with(ACCEPT_ENCODING, "identity"),
            Self::IdempotencyMismatch => {
                fixed!(422, "idempotency_mismatch", "this Idempotency-Key was used for another pet")
            }
            Self::RateLimited => {
                fixed!(429, "rate_limited", "too many requests with this API key; retry later").with(RETRY_AFTER, "1")
            }
            Self::TooManyAuthFailures(seconds) => {
                fixed!(429, "rate_limited", "too many failed authentications from this address; retry later")
                    .with(RETRY_AFTER, seconds.to_string())
            }
            Self::Internal(_) => fixed!(500, "internal_error", "internal error"),
            Self::Unavailable(_) => {
                fixed!(503, "unavailable", "the service is unavailable; retry later").with(RETRY_AFTER, "1")
            }
            Self::Overloaded(_) => {
                fixed!(503, "overloaded", "the service is overloaded; retry later").with(RETRY_AFTER, "1")
            }
            // Without Retry-After, because a retry could add a second pet.
            Self::OutcomeUnknown(_) => {
                fixed!(
                    503,
                    "outcome_unknown",
                    "the pet may have been added; check before you retry without an Idempotency-Key"
                )
            }
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.response().status_code()
    }

    fn error_response(&self) -> HttpResponse {
        let mut body = self.response();
        let mut response = HttpResponse::build(body.status_code());
        if let Some((name, value)) = body.header.take() {
            response.insert_header((name, &*value));
        }
        if body.status >= 500 {
            // The error may occur before the routes under `/v1`, which set this header on their responses.
            response.insert_header((CACHE_CONTROL, "no-store"));
        }
        if matches!(self, Self::MalformedRequest | Self::RequestTimeout) {
            response.force_close();
        }
        response.content_type(JSON);
        match body.json {
            Some(fixed) => response.body(fixed),
            None => response.body(serde_json::to_vec(&body).expect("texts and a number")),
        }
    }
}
