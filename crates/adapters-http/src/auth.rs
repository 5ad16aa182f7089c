//! The API key of every request under `/v1`, by the HTTP bearer scheme (RFC 6750), and what it may do.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use actix_web::{
    Error, FromRequest, HttpMessage, HttpRequest,
    body::{EitherBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::header::{AUTHORIZATION, HeaderMap},
    middleware::Next,
    web::Data,
};
use animal_store_app::{ApiKey, Scope};
use secrecy::SecretString;

use crate::{UseCases, error::ApiError};

/// The longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 512;

/// Lets a request pass whose key is valid, with the key among its extensions; answers every other one.
pub(crate) async fn authenticate<B: MessageBody>(
    use_cases: Data<UseCases>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let token = match bearer_token(request.headers()) {
        Ok(token) => token,
        Err(error) => return Ok(request.error_response(error).map_into_right_body()),
    };
    match use_cases.authenticate.execute(token).await {
        Ok(key) => {
            request.extensions_mut().insert(key);
            Ok(next.call(request).await?.map_into_left_body())
        }
        Err(error) => Ok(request.error_response(ApiError::from(error)).map_into_right_body()),
    }
}

fn bearer_token(headers: &HeaderMap) -> Result<SecretString, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next().ok_or(ApiError::MissingApiKey)?.as_bytes();
    if values.next().is_some() {
        return Err(ApiError::MalformedApiKey);
    }
    let (scheme, token) = value.split_at(value.iter().position(|&byte| byte == b' ').unwrap_or(value.len()));
    if !scheme.eq_ignore_ascii_case(b"Bearer") {
        return Err(ApiError::MissingApiKey);
    }
    let token = std::str::from_utf8(token).map_err(|_| ApiError::MalformedApiKey)?.trim_start_matches(' ');
    if is_bearer_token(token) { Ok(token.into()) } else { Err(ApiError::MalformedApiKey) }
}

/// The first argument of a handler that reads: refuses keys without that scope before anything else is looked at.
pub(crate) struct MayRead;

/// The same of a handler that writes, which is told whose key it is.
pub(crate) struct MayWrite(pub(crate) Arc<ApiKey>);

impl FromRequest for MayRead {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(require(request, Scope::Read, |_| Self))
    }
}

impl FromRequest for MayWrite {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(require(request, Scope::Write, |key| Self(Arc::clone(key))))
    }
}

fn require<T>(request: &HttpRequest, scope: Scope, permit: impl FnOnce(&Arc<ApiKey>) -> T) -> Result<T, ApiError> {
    let extensions = request.extensions();
    let permitted = extensions.get::<Arc<ApiKey>>().filter(|key| key.scopes.contains(scope));
    permitted.map(permit).ok_or(ApiError::InsufficientScope(scope))
}

/// Whether a text can be a token: a b64token (RFC 6750, section 2.1) of 1 to 512 bytes.
pub fn is_bearer_token(token: &str) -> bool {
    let text = token.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !text.is_empty() && token.len() <= MAX_TOKEN_BYTES && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use secrecy::ExposeSecret;

    use super::*;

    fn token(values: &[&[u8]]) -> Result<String, ApiError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer_token(&headers).map(|token| token.expose_secret().to_owned())
    }

    #[test]
    fn the_scheme_may_be_written_in_any_case() {
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            assert_eq!(token(&[format!("{scheme} abc").as_bytes()]).unwrap(), "abc");
        }
    }

    #[test]
    fn no_header_or_another_scheme_is_a_missing_key() {
        for values in [&[][..], &[&b""[..]], &[b"Basic YTpi"], &[b"abc"], &[b"Bearerabc"], &[b"Bearer\tabc"]] {
            assert!(matches!(token(values), Err(ApiError::MissingApiKey)), "{values:?}");
        }
    }

    #[test]
    fn a_token_has_1_to_512_characters_of_its_alphabet_and_padding_at_its_end_alone() {
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        for good in ["a", "AZaz09-._~+/", "a=", "a==", &longest] {
            assert_eq!(token(&[format!("Bearer {good}").as_bytes()]).unwrap(), good);
            assert_eq!(token(&[format!("Bearer   {good}").as_bytes()]).unwrap(), good);
        }
        let too_long = format!("Bearer {longest}x");
        for bad in [
            "Bearer",
            "Bearer ",
            "Bearer =",
            "Bearer a=b",
            "Bearer a b",
            "Bearer \ta",
            "Bearer a,b",
            "Bearer \"a\"",
            "Bearer é",
            &too_long,
        ] {
            assert!(matches!(token(&[bad.as_bytes()]), Err(ApiError::MalformedApiKey)), "{bad:?}");
        }
        assert!(matches!(token(&[b"Bearer \xff"]), Err(ApiError::MalformedApiKey)));
    }

    #[test]
    fn two_headers_are_one_too_many_even_when_they_agree() {
        for second in [&b"Bearer abc"[..], b"Basic YTpi"] {
            assert!(matches!(token(&[b"Bearer abc", second]), Err(ApiError::MalformedApiKey)));
        }
    }
}
