//! What the fuzz targets in `fuzz/` call, compiled only for them (`cfg(fuzzing)`): parsers of untrusted bytes, which
//! are private otherwise. Errors are reduced to the texts that a target checks.

use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use animal_store_app::{ApiKeyId, ApiToken, IdempotencyKey};
use animal_store_domain::{ListQuery, PetId};

pub use crate::transport::fuzzing::serve_pieces;
use crate::{
    auth,
    error::ApiError,
    pets::{
        idempotency_key::{self, IDEMPOTENCY_KEY},
        list_query,
    },
};

/// Parses the values of `Authorization` headers. `None`: one of them cannot be the value of a header.
pub fn parse_authorization(values: &[&[u8]]) -> Option<Result<ApiToken, String>> {
    let headers = headers(&AUTHORIZATION, values)?;
    Some(auth::bearer_token(&headers).map_err(|error| format!("{error:?}")))
}

/// Parses the value of an `Idempotency-Key` header. `None`: it cannot be the value of a header. `Some(None)`: the key
/// is refused.
pub fn parse_idempotency_key(value: &[u8], api_key: &ApiKeyId) -> Option<Option<IdempotencyKey>> {
    let headers = headers(&IDEMPOTENCY_KEY, &[value])?;
    Some(idempotency_key::parse(&headers, api_key).ok().flatten())
}

/// Parses a query string.
///
/// # Errors
/// The problems of its parameters.
///
/// # Panics
/// If the query is refused for another reason.
pub fn parse_query(query: &str) -> Result<ListQuery, String> {
    list_query::parse(query).map_err(|error| match error {
        ApiError::InvalidQuery(problems) => problems.to_string(),
        other => panic!("another error: {other:?}"),
    })
}

/// Returns the position of a cursor. `Some(None)` is the start of the list.
pub fn decode_cursor(cursor: &str) -> Option<Option<PetId>> {
    list_query::decode_cursor(cursor).ok()
}

/// Returns the cursor of a position.
pub fn encode_cursor(after: PetId) -> String {
    list_query::encode_cursor(after)
}

fn headers(name: &HeaderName, values: &[&[u8]]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name.clone(), HeaderValue::from_bytes(value).ok()?);
    }
    Some(headers)
}
