//! An API key as a bearer token in the `Authorization` header (RFC 6750).

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use animal_store_app::ApiToken;

use crate::error::ApiError;

/// Parses the header.
pub(crate) fn parse(headers: &HeaderMap) -> Result<ApiToken, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next().ok_or(ApiError::MissingApiKey)?.as_bytes();
    if values.next().is_some() {
        return Err(ApiError::MalformedApiKey);
    }
    let mut parts = value.splitn(2, |&byte| byte == b' ');
    let scheme = parts.next().unwrap_or_default();
    let token = parts.next().unwrap_or_default();
    if !scheme.eq_ignore_ascii_case(b"Bearer") {
        return Err(ApiError::MissingApiKey);
    }
    let token = std::str::from_utf8(token)
        .map_err(|_| ApiError::MalformedApiKey)?
        .trim_start_matches(' ');
    Ok(ApiToken::parse(token.into())?)
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
        parse(&headers).map(|token| token.secret().expose_secret().to_owned())
    }

    #[test]
    fn the_scheme_may_be_written_in_any_case() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            assert_eq!(token(&[value.as_bytes()]).unwrap(), "abc");
        }
    }

    #[test]
    fn a_key_is_missing_without_the_scheme_malformed_if_it_is_no_token_and_unknown_if_it_is_mistyped()
     {
        let missing = ApiError::MissingApiKey;
        let malformed = ApiError::MalformedApiKey;
        for (values, expected) in [
            (&[][..], &missing),
            (&[&b""[..]], &missing),
            (&[b"Basic YTpi"], &missing),
            (&[b"abc"], &missing),
            (&[b"Bearerabc"], &missing),
            (&[b"Bearer\tabc"], &missing),
            (&[b"Bearer"], &malformed),
            (&[b"Bearer "], &malformed),
            (&[b"Bearer a b"], &malformed),
            (&[b"Bearer \ta"], &malformed),
            (&["Bearer é".as_bytes()], &malformed),
            (&[b"Bearer \xff"], &malformed),
            (&[b"Bearer abc", b"Bearer abc"], &malformed),
            (&[b"Bearer abc", b"Basic YTpi"], &malformed),
            (&[b"Bearer animalstore_mistyped"], &ApiError::UnknownApiKey),
        ] {
            let error = token(values).expect_err("no token");
            assert_eq!(error.to_string(), expected.to_string(), "{values:?}");
        }
    }
}
