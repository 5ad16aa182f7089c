//! The media type and the coding of a request body.

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use mime::Mime;

use crate::{error::ApiError, header_lists::elements};

/// Fails unless the body is JSON without a content coding.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    check_content_encoding(headers)?;
    check_content_type(headers)
}

/// Every element of the list must be `identity`.
fn check_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let refused = elements(headers, CONTENT_ENCODING)
        .find(|element| !element.eq_ignore_ascii_case(b"identity"));
    match refused {
        Some(encoding) => Err(ApiError::UnsupportedContentEncoding(shown(encoding))),
        None => Ok(()),
    }
}

/// Accepts `application/json` and `application/*+json`, in UTF-8: JSON has no other encoding (RFC 8259, section 8.1).
fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let refused = |text| Err(ApiError::UnsupportedContentType(text));
    let values: Vec<_> = headers.get_all(CONTENT_TYPE).collect();
    let [value] = values[..] else {
        return refused(format!("{} values of Content-Type", values.len()));
    };
    let mime = value.to_str().ok().and_then(parse_media_type);
    let Some(mime) = mime.filter(is_json) else {
        return refused(shown(value.as_bytes()));
    };
    for (name, charset) in mime.params() {
        let charset = charset.as_str();
        if name == mime::CHARSET && !is_utf_8(charset) {
            return refused(format!("charset={}", shown(charset.as_bytes())));
        }
    }
    Ok(())
}

/// Returns the beginning of a header value, for a message.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().take(64).collect()
}

/// `mime` accepts neither spaces before a semicolon nor empty parameters, which RFC 9110, section 5.6.6, allows.
fn parse_media_type(text: &str) -> Option<Mime> {
    if let Ok(mime) = text.parse() {
        return Some(mime);
    }
    let mut parts = text.split(';').map(str::trim);
    let mut corrected = parts.next()?.to_owned();
    for parameter in parts.filter(|parameter| !parameter.is_empty()) {
        corrected += ";";
        corrected += parameter;
    }
    corrected.parse().ok()
}

fn is_json(mime: &Mime) -> bool {
    mime.type_() == mime::APPLICATION && mime.suffix().unwrap_or(mime.subtype()) == mime::JSON
}

/// Returns whether this is a name of UTF-8, or of a part of it.
fn is_utf_8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"]
        .iter()
        .any(|name| charset.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn with(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn json_types_in_utf_8_are_accepted() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json\t;\tcharset=\"utf-8\" ; x=y",
            "application/json ; ; charset=utf-8;;",
            "application/json; charset=utf8",
            "application/json; charset=\"UTF8\"",
            "application/json; charset=us-ascii",
            "application/json; charset=\"ASCII\"",
            "application/json; CHARSET=Utf-8; charset=utf8",
            "application/merge-patch+json; charset=utf-8",
        ] {
            let accepted = check_content_type(&with(&CONTENT_TYPE, &[good]));
            assert!(accepted.is_ok(), "{good}");
        }
    }

    #[test]
    fn only_an_unencoded_body_is_accepted() {
        for good in [
            &[][..],
            &["identity"],
            &["Identity"],
            &[""],
            &["", ""],
            &["identity,"],
            &[", ,identity\t,, IDENTITY"],
        ] {
            assert!(
                check_content_encoding(&with(&CONTENT_ENCODING, good)).is_ok(),
                "{good:?}"
            );
        }
        for bad in [
            &["gzip"][..],
            &["br"],
            &["identity, gzip"],
            &["identity", "gzip"],
            &[",gzip"],
            &["identity;q=1"],
        ] {
            assert!(
                check_content_encoding(&with(&CONTENT_ENCODING, bad)).is_err(),
                "{bad:?}"
            );
        }
    }

    #[track_caller]
    fn assert_refused(values: &[&'static str], expected: &str) {
        let refused = check_content_type(&with(&CONTENT_TYPE, values)).unwrap_err();
        let message =
            "the request body must be JSON in UTF-8 (Content-Type: application/json), not";
        assert_eq!(
            refused.to_string(),
            format!("{message} {expected}"),
            "{values:?}"
        );
    }

    #[test]
    fn any_other_type_is_refused_by_its_name() {
        for value in [
            "",
            "json",
            "text/json",
            "text/plain; charset=utf-8",
            "text/plain+json",
            "application/jsonp",
            "application/xml+json2",
            "application/json+xml",
            "application /json",
            ";application/json",
            "application/json charset=utf-8",
            "application/json ; charset = utf-8",
        ] {
            assert_refused(&[value], value);
        }
        for (value, charset) in [
            ("application/json; charset=latin1", "latin1"),
            ("application/json;charset=\"UTF-16\"", "utf-16"),
            ("application/json ; charset=utf-16;", "utf-16"),
            ("application/json; charset=utf-8; charset=cp1252", "cp1252"),
        ] {
            assert_refused(&[value], &format!("charset={charset}"));
        }
        assert_refused(&[], "0 values of Content-Type");
        let json = "application/json";
        assert_refused(&[json, json], "2 values of Content-Type");
    }

    #[test]
    fn a_refusal_shows_at_most_64_characters_of_the_value() {
        assert_eq!(shown("é".repeat(1000).as_bytes()), "é".repeat(64));
        let refused = check_content_encoding(&with(&CONTENT_ENCODING, &["identity, br"]));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the request body must not be encoded, but its Content-Encoding is br"
        );
    }
}
