//! Every answer that is not a success, and the only place that knows which status it has.
//!
//! What is wrong with a request may be told in words made for the client ([`Problems`]). What is wrong on our side
//! has a fixed text; its cause stays beside the response, where only the request log reads it.

mod from_use_cases;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

use actix_web::{
    HttpResponse, ResponseError,
    http::{StatusCode, header},
};
use animal_store_app::{Scope, ports::Cause};
use serde::Serialize;
use thiserror::Error;

/// Seconds after which a client may try again.
const RETRY_AFTER: &str = "1";

#[derive(Debug, Error)]
#[error("{}", self.code())]
pub(crate) enum ApiError {
    InvalidBody(Problems),
    InvalidQuery(Problems),
    InvalidHeader(Problems),
    MalformedRequest,
    MissingApiKey,
    /// The `Authorization` header has the wrong form.
    MalformedApiKey,
    /// No valid key has this token.
    UnknownApiKey,
    /// The key lacks this one.
    InsufficientScope(Scope),
    PetNotFound,
    RouteNotFound,
    /// The methods that are allowed.
    MethodNotAllowed(&'static str),
    RequestTimeout,
    /// The most bytes a body may have.
    PayloadTooLarge(usize),
    UnsupportedContentType,
    UnsupportedContentEncoding,
    /// The first request with the same idempotency key is still under way.
    IdempotencyConflict,
    /// The idempotency key belongs to another animal.
    IdempotencyMismatch,
    Internal(#[source] Cause),
    Unavailable(#[source] Cause),
    Overloaded,
    OutcomeUnknown(#[source] Cause),
}

/// What is wrong with a request, in words for the client: one entry for each member or parameter.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }

    pub(crate) fn push(&mut self, name: &str, problem: &dyn fmt::Display) {
        self.0.push(format!("{name} {problem}"));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

/// The Error body of the interface.
#[derive(Serialize)]
pub(crate) struct ErrorResponse {
    code: &'static str,
    message: Cow<'static, str>,
    status: u16,
}

impl ApiError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::InvalidBody(_) | Self::InvalidQuery(_) | Self::InvalidHeader(_) | Self::MalformedRequest => {
                StatusCode::BAD_REQUEST
            }
            Self::MissingApiKey | Self::MalformedApiKey | Self::UnknownApiKey => StatusCode::UNAUTHORIZED,
            Self::InsufficientScope(_) => StatusCode::FORBIDDEN,
            Self::PetNotFound | Self::RouteNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::PayloadTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedContentType | Self::UnsupportedContentEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::IdempotencyConflict => StatusCode::CONFLICT,
            Self::IdempotencyMismatch => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable(_) | Self::Overloaded | Self::OutcomeUnknown(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::InvalidBody(_) => "invalid_body",
            Self::InvalidQuery(_) => "invalid_query",
            Self::InvalidHeader(_) => "invalid_header",
            Self::MalformedRequest => "malformed_request",
            Self::MissingApiKey => "missing_api_key",
            Self::MalformedApiKey | Self::UnknownApiKey => "invalid_api_key",
            Self::InsufficientScope(_) => "insufficient_scope",
            Self::PetNotFound => "pet_not_found",
            Self::RouteNotFound => "route_not_found",
            Self::MethodNotAllowed(_) => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::PayloadTooLarge(_) => "payload_too_large",
            Self::UnsupportedContentType | Self::UnsupportedContentEncoding => "unsupported_media_type",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::IdempotencyMismatch => "idempotency_mismatch",
            Self::Internal(_) => "internal_error",
            Self::Unavailable(_) => "unavailable",
            Self::Overloaded => "overloaded",
            Self::OutcomeUnknown(_) => "outcome_unknown",
        }
    }

    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::InvalidBody(problems) | Self::InvalidQuery(problems) | Self::InvalidHeader(problems) => {
                return problems.to_string().into();
            }
            Self::PayloadTooLarge(limit) => return format!("the request body must have at most {limit} bytes").into(),
            Self::MethodNotAllowed(allowed) => return format!("method not allowed; allowed: {allowed}").into(),
            Self::MalformedRequest => "the request is not valid HTTP",
            Self::MissingApiKey => "an API key is required: Authorization: Bearer <API_KEY>",
            Self::MalformedApiKey => "the Authorization header must be sent once, in the form: Bearer <API_KEY>",
            Self::UnknownApiKey => "the API key is not valid",
            Self::InsufficientScope(Scope::Read) => "the API key does not have the `read` scope",
            Self::InsufficientScope(Scope::Write) => "the API key does not have the `write` scope",
            Self::PetNotFound => "no pet has this id",
            Self::RouteNotFound => "path not found",
            Self::RequestTimeout => "the request body did not arrive in time",
            Self::UnsupportedContentType => "the request body must be JSON in UTF-8: Content-Type: application/json",
            Self::UnsupportedContentEncoding => "the request body must not be encoded: Content-Encoding: identity",
            Self::IdempotencyConflict => "an earlier request with this Idempotency-Key is in flight; retry later",
            Self::IdempotencyMismatch => "this Idempotency-Key was used for another pet",
            Self::Internal(_) => "internal error",
            Self::Unavailable(_) => "the service is unavailable; retry later",
            Self::Overloaded => "the service is overloaded; retry later",
            Self::OutcomeUnknown(_) => "the pet may have been added; check before you retry without an Idempotency-Key",
        }
        .into()
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> ErrorResponse {
        ErrorResponse { code: self.code(), message: self.message(), status: self.status().as_u16() }
    }

    /// The header that tells the client what to do about it.
    pub(crate) fn advice(&self) -> Option<(header::HeaderName, &'static str)> {
        match self {
            Self::MissingApiKey => Some((header::WWW_AUTHENTICATE, r#"Bearer realm="animal-store""#)),
            Self::MalformedApiKey => {
                Some((header::WWW_AUTHENTICATE, r#"Bearer realm="animal-store", error="invalid_request""#))
            }
            Self::UnknownApiKey => {
                Some((header::WWW_AUTHENTICATE, r#"Bearer realm="animal-store", error="invalid_token""#))
            }
            Self::InsufficientScope(Scope::Read) => Some((
                header::WWW_AUTHENTICATE,
                r#"Bearer realm="animal-store", error="insufficient_scope", scope="read""#,
            )),
            Self::InsufficientScope(Scope::Write) => Some((
                header::WWW_AUTHENTICATE,
                r#"Bearer realm="animal-store", error="insufficient_scope", scope="write""#,
            )),
            Self::MethodNotAllowed(allowed) => Some((header::ALLOW, allowed)),
            Self::UnsupportedContentEncoding => Some((header::ACCEPT_ENCODING, "identity")),
            Self::IdempotencyConflict | Self::Unavailable(_) | Self::Overloaded => {
                Some((header::RETRY_AFTER, RETRY_AFTER))
            }
            Self::InvalidBody(_)
            | Self::InvalidQuery(_)
            | Self::InvalidHeader(_)
            | Self::MalformedRequest
            | Self::PetNotFound
            | Self::RouteNotFound
            | Self::RequestTimeout
            | Self::PayloadTooLarge(_)
            | Self::UnsupportedContentType
            | Self::IdempotencyMismatch
            | Self::Internal(_)
            // No Retry-After: it would invite a second animal.
            | Self::OutcomeUnknown(_) => None,
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status());
        if let Some(advice) = self.advice() {
            response.insert_header(advice);
        }
        if self.status().is_server_error() {
            // Some are answered before anything knows that they are under `/v1`.
            response.insert_header((header::CACHE_CONTROL, "no-store"));
        }
        if matches!(self, Self::MalformedRequest | Self::RequestTimeout) {
            response.force_close();
        }
        response.json(self.body())
    }
}
