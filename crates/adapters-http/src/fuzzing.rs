//! What the fuzz targets in `fuzz/` call, compiled only for them (feature `fuzzing`): parsers of untrusted bytes, which
//! are private otherwise. Errors are reduced to the texts that a target checks.

use actix_web::http::header::HeaderMap;
use animal_store_app::{ApiKeyId, ApiToken, IdempotencyKey};
use animal_store_domain::ListQuery;

use crate::{
    bearer_token,
    pets::{idempotency_key, list_query},
};

/// Parses the `Authorization` headers.
///
/// # Errors
/// The name of the error.
pub fn parse_authorization(headers: &HeaderMap) -> Result<ApiToken, String> {
    bearer_token::parse(headers).map_err(|error| format!("{error:?}"))
}

/// Parses the `Idempotency-Key` headers. `None`: they are refused.
pub fn parse_idempotency_key(headers: &HeaderMap, api_key: &ApiKeyId) -> Option<IdempotencyKey> {
    idempotency_key::parse(headers, api_key).ok().flatten()
}

/// Parses a query string.
///
/// # Errors
/// The problems of its parameters.
pub fn parse_query(query: &str) -> Result<ListQuery, String> {
    list_query::parse(query)
}
