//! What the fuzz targets in `fuzz/` call, compiled only for them (`cfg(fuzzing)`): parsers of untrusted bytes, which
//! are private otherwise. Errors are reduced to the texts that a target checks.

use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use animal_store_app::ApiToken;

use crate::auth;
pub use crate::{
    pets::fuzzing::{parse_idempotency_key, parse_query},
    transport::fuzzing::serve_pieces,
};

/// Parses the values of `Authorization` headers. `None`: one of them cannot be the value of a header.
pub fn parse_authorization(values: &[&[u8]]) -> Option<Result<ApiToken, String>> {
    let headers = headers(AUTHORIZATION, values)?;
    Some(auth::bearer_token(&headers).map_err(|error| format!("{error:?}")))
}

pub(crate) fn headers(name: HeaderName, values: &[&[u8]]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name.clone(), HeaderValue::from_bytes(value).ok()?);
    }
    Some(headers)
}
