use animal_store_app::{ApiKeyId, IdempotencyKey};
use animal_store_domain::ListQuery;

use super::{
    idempotency_key::{self, IDEMPOTENCY_KEY},
    list_query,
};
use crate::{error::ApiError, fuzzing::headers};

/// Parses a query string.
///
/// # Errors
/// The problems of its parameters.
pub fn parse_query(query: &str) -> Result<ListQuery, String> {
    list_query::parse(query).map_err(problems)
}

fn problems(error: ApiError) -> String {
    match error {
        ApiError::InvalidBody(problems) | ApiError::InvalidQuery(problems) => problems.to_string(),
        other => panic!("another error: {other:?}"),
    }
}

/// Parses the value of an `Idempotency-Key` header. `None`: it cannot be the value of a header. `Some(None)`: the key
/// is refused.
#[expect(clippy::option_option, reason = "the framework refuses other bytes before the adapter")]
pub fn parse_idempotency_key(value: &[u8], api_key: &ApiKeyId) -> Option<Option<IdempotencyKey>> {
    let headers = headers(IDEMPOTENCY_KEY, &[value])?;
    Some(idempotency_key::parse(&headers, api_key).ok().flatten())
}
