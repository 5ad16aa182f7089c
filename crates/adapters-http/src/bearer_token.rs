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
    let (scheme, token) = value.split_at(
        value
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(value.len()),
    );
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
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            assert_eq!(token(&[format!("{scheme} abc").as_bytes()]).unwrap(), "abc");
        }
    }

    #[test]
    fn no_header_or_another_scheme_is_a_missing_key() {
        for values in [
            &[][..],
            &[&b""[..]],
            &[b"Basic YTpi"],
            &[b"abc"],
            &[b"Bearerabc"],
            &[b"Bearer\tabc"],
        ] {
            assert!(
                matches!(token(values), Err(ApiError::MissingApiKey)),
                "{values:?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_not_a_token_is_malformed() {
        for bad in ["Bearer", "Bearer ", "Bearer a b", "Bearer \ta", "Bearer é"] {
            assert!(
                matches!(token(&[bad.as_bytes()]), Err(ApiError::MalformedApiKey)),
                "{bad:?}"
            );
        }
        assert!(matches!(
            token(&[b"Bearer \xff"]),
            Err(ApiError::MalformedApiKey)
        ));
        assert!(matches!(
            token(&[b"Bearer animalstore_mistyped"]),
            Err(ApiError::UnknownApiKey)
        ));
    }

    #[test]
    fn two_headers_are_malformed_even_if_they_are_equal() {
        for second in [&b"Bearer abc"[..], b"Basic YTpi"] {
            assert!(matches!(
                token(&[b"Bearer abc", second]),
                Err(ApiError::MalformedApiKey)
            ));
        }
    }
}
