//! The errors that each operation can respond with. The code cannot derive these lists.

use std::collections::BTreeSet;

use animal_store_app::Scope;

use crate::{
    error::{ApiError, Problems},
    metrics::Shed,
};

pub(super) fn list_pets() -> Vec<ApiError> {
    with_common([
        ApiError::InvalidQuery(Problems::one("limit must be a whole number from 1 to 100")),
        ApiError::InsufficientScope(Scope::Read),
    ])
}

pub(super) fn create_pet() -> Vec<ApiError> {
    with_common([
        ApiError::InvalidBody(Problems::one("name must be a string; categoryId is required")),
        ApiError::InvalidHeader(Problems::one("Idempotency-Key must be sent once")),
        ApiError::MalformedRequest,
        ApiError::InsufficientScope(Scope::Write),
        ApiError::RequestTimeout,
        ApiError::IdempotencyConflict,
        ApiError::PayloadTooLarge(16 * 1024),
        ApiError::UnsupportedContentType,
        ApiError::UnsupportedContentEncoding,
        ApiError::IdempotencyMismatch,
        ApiError::OutcomeUnknown("".into()),
    ])
}

/// Without the common errors, which do not have the headers of a deprecated operation.
pub(super) fn get_pet() -> Vec<ApiError> {
    vec![ApiError::PetNotFound, ApiError::InsufficientScope(Scope::Read), ApiError::Gone]
}

/// Errors of every operation.
pub(super) fn common() -> Vec<ApiError> {
    vec![
        ApiError::MissingApiKey,
        ApiError::MalformedApiKey,
        ApiError::UnknownApiKey,
        ApiError::RateLimited,
        ApiError::TooManyAuthFailures(6),
        ApiError::Internal("".into()),
        ApiError::Unavailable("".into()),
        ApiError::Overloaded(Shed::InFlight),
    ]
}

fn with_common<const N: usize>(errors: [ApiError; N]) -> Vec<ApiError> {
    errors.into_iter().chain(common()).collect()
}

/// The codes of all errors, including those of requests that reach no operation.
pub(super) fn codes() -> BTreeSet<&'static str> {
    let no_operation = vec![ApiError::RouteNotFound, ApiError::MethodNotAllowed("")];
    let errors = [list_pets(), create_pet(), get_pet(), no_operation];
    errors.iter().flatten().map(|error| error.response().code).collect()
}
