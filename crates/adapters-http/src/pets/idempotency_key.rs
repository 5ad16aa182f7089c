//! `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a client-chosen key of a create, so that a retry does
//! not add a second pet.

use std::borrow::Cow;

use actix_web::http::header::{HeaderMap, HeaderName};
use animal_store_app::{ApiKeyId, IdempotencyKey};
use sfv::{BareItem, Item, Parser};

use crate::error::ApiError;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Set on a response that repeats the response to an earlier request with the same key.
pub(crate) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

const MAX_CHARS: usize = 255;

const PROBLEM: &str =
    "Idempotency-Key must be sent once, as 1 to 255 visible ASCII characters, bare or quoted";

/// Parses the header. Keys of different API keys are different.
pub(crate) fn parse(
    headers: &HeaderMap,
    api_key: &ApiKeyId,
) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match parse_text(value.as_bytes()) {
        Some(text) if values.next().is_none() => {
            Ok(Some(IdempotencyKey::new(api_key.clone(), &text)))
        }
        _ => Err(ApiError::InvalidHeader(PROBLEM.into())),
    }
}

/// Returns a bare value as it is, and the content of a String of structured fields (RFC 9651, section 3.3.3).
fn parse_text(value: &[u8]) -> Option<Cow<'_, str>> {
    let text = if value.starts_with(b"\"") {
        match Parser::new(value).parse().ok()? {
            Item {
                bare_item: BareItem::String(string),
                params,
            } if params.is_empty() => Cow::from(String::from(string)),
            _ => return None,
        }
    } else {
        Cow::from(str::from_utf8(value).ok()?)
    };
    let is_valid =
        (1..=MAX_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid.then_some(text)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use animal_store_app::test_support::api_key_id;
    use proptest::{prelude::*, string::string_regex};

    use super::*;
    use crate::openapi::tests::pattern;

    fn parse(values: &[&[u8]]) -> Result<Option<IdempotencyKey>, ApiError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
        }
        super::parse(&headers, &api_key_id("shop"))
    }

    #[test]
    fn a_bare_key_and_a_quoted_key_are_equal() {
        let longest = "~".repeat(MAX_CHARS);
        for (bare, quoted) in [
            ("a", r#""a""#),
            (
                "8e03978e-40d5-43e8-bc93-6894a57f9324",
                r#""8e03978e-40d5-43e8-bc93-6894a57f9324""#,
            ),
            (r#"!a"b\c~"#, r#""!a\"b\\c~""#),
            (r"\", r#""\\""#),
            ("a;b=1", r#""a;b=1""#),
            (&longest, &format!("\"{longest}\"")),
        ] {
            let key = IdempotencyKey::new(api_key_id("shop"), bare);
            assert_eq!(
                parse(&[bare.as_bytes()]).unwrap(),
                Some(key.clone()),
                "{bare}"
            );
            assert_eq!(parse(&[quoted.as_bytes()]).unwrap(), Some(key), "{quoted}");
        }
        assert_eq!(parse(&[]).unwrap(), None);
    }

    #[test]
    fn any_other_value_is_refused() {
        let long = "x".repeat(MAX_CHARS + 1);
        for bad in [
            &[""][..],
            &["\"\""],
            &["a b"],
            &["\"a b\""],
            &["a\tb"],
            &["é"],
            &["\"a"],
            &[r#""a"b"#],
            &[r#""a","#],
            &[r#""a\""#],
            &["a, b"],
            &[r#""a\b""#],
            &[r#""a";b=1"#],
            &[r#""a", "b""#],
            &[&long],
            &[&format!("\"{long}\"")],
            &["a", "a"],
        ] {
            let values: Vec<_> = bad.iter().map(|value| value.as_bytes()).collect();
            assert!(
                matches!(parse(&values), Err(ApiError::InvalidHeader(_))),
                "{bad:?}"
            );
        }
        assert!(parse(&[b"a\xff"]).is_err());
    }

    proptest! {
        #[test]
        fn every_text_of_the_pattern_is_valid(
            text in string_regex(pattern("/paths/~1pets/post/parameters/0/schema")).unwrap()
        ) {
            prop_assert!(matches!(parse(&[text.as_bytes()]), Ok(Some(_))), "{text:?}");
        }
    }
}
