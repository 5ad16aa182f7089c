//! Checks the type, the size and the timeout of a request body.

use actix_web::{
    HttpRequest,
    error::PayloadError,
    http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap},
    web::{Bytes, Data, Payload},
};
use futures_util::StreamExt;
use mime::Mime;

use crate::{auth::RequestLimits, error::ApiError, header_lists::elements};

/// Returns a body with a JSON content type within the limits.
pub(crate) async fn read_json(request: &HttpRequest, payload: Payload) -> Result<Bytes, ApiError> {
    let limits = request
        .app_data::<Data<RequestLimits>>()
        .expect("`serve_api` sets the limits");
    read(request.headers(), payload, limits.max_body_bytes).await
}

/// Fails with 400 if there is no body, then with 415, then with the error of the transport, which passes on a body as a
/// whole or not at all.
async fn read(
    headers: &HeaderMap,
    mut payload: Payload,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    let body = payload.next().await.unwrap_or(Ok(Bytes::new()));
    if body.as_ref().is_ok_and(Bytes::is_empty) {
        return Err(ApiError::InvalidBody(
            "a request body is required: a pet as a JSON object".into(),
        ));
    }
    check_content_encoding(headers)?;
    check_content_type(headers)?;
    body.map_err(|error| match error {
        PayloadError::Overflow => ApiError::PayloadTooLarge(max_bytes),
        PayloadError::Io(_) => ApiError::RequestTimeout,
        _ => ApiError::MalformedRequest,
    })
}

/// Length of the body according to its header. actix refuses a header that is not a number.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
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
    let Some(mime) = value
        .to_str()
        .ok()
        .and_then(parse_media_type)
        .filter(is_json)
    else {
        return refused(shown(value.as_bytes()));
    };
    let charset = mime
        .params()
        .find(|(name, charset)| *name == mime::CHARSET && !is_utf_8(charset.as_str()));
    match charset {
        Some((_, charset)) => refused(format!("charset={}", shown(charset.as_str().as_bytes()))),
        None => Ok(()),
    }
}

/// Returns the beginning of a header value, for a message.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().take(64).collect()
}

/// `mime` accepts neither spaces before a semicolon nor empty parameters, which RFC 9110, section 5.6.6, allows.
fn parse_media_type(text: &str) -> Option<Mime> {
    text.parse().ok().or_else(|| {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next()?.to_owned();
        let parameters = parts.filter(|parameter| !parameter.is_empty());
        parameters
            .fold(essence, |text, parameter| text + ";" + parameter)
            .parse()
            .ok()
    })
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
    use std::io::ErrorKind;

    use actix_web::{
        FromRequest, ResponseError, dev,
        http::{
            StatusCode,
            header::{HeaderName, HeaderValue},
        },
        test::TestRequest,
    };
    use futures_util::{FutureExt, Stream, stream::iter};

    use super::*;

    const MAX_BYTES: usize = 4;

    type Body = Result<&'static str, PayloadError>;

    /// The status or the body, if the transport passes on these items. `None`: the body has to arrive first.
    fn read_passed(
        headers: &HeaderMap,
        items: impl Stream<Item = Body> + 'static,
    ) -> Option<Result<Bytes, StatusCode>> {
        let items = items.map(|body| body.map(Bytes::from));
        let request = TestRequest::default().to_http_request();
        let mut payload = dev::Payload::Stream {
            payload: items.boxed_local(),
        };
        let payload = Payload::from_request(&request, &mut payload)
            .now_or_never()?
            .expect("a payload");
        read(headers, payload, MAX_BYTES)
            .now_or_never()
            .map(|read| read.map_err(|error| error.status_code()))
    }

    fn with(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_body_is_refused_because_it_is_missing_then_by_its_type_then_by_the_transport() {
        const JSON: &str = "application/json";
        for (length, content_type, body, expected) in [
            (None, JSON, Some(Ok("abcd")), Ok("abcd")),
            (Some("4"), JSON, Some(Ok("abcd")), Ok("abcd")),
            (None, "text/plain", None, Err(400)),
            (None, "text/plain", Some(Ok("")), Err(400)),
            (Some("0"), "text/plain", None, Err(400)),
            (
                None,
                "text/plain",
                Some(Err(PayloadError::Overflow)),
                Err(415),
            ),
            (None, JSON, Some(Err(PayloadError::Overflow)), Err(413)),
            (
                Some("4"),
                JSON,
                Some(Err(PayloadError::Io(ErrorKind::TimedOut.into()))),
                Err(408),
            ),
            (
                None,
                JSON,
                Some(Err(PayloadError::EncodingCorrupted)),
                Err(400),
            ),
            (
                Some("4"),
                JSON,
                Some(Err(PayloadError::Incomplete(None))),
                Err(400),
            ),
        ] {
            let mut headers = with(&CONTENT_TYPE, &[content_type]);
            if let Some(length) = length {
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static(length));
            }
            let name = format!("{length:?} {content_type} {body:?}");
            let read = read_passed(&headers, iter(body))
                .expect("a result")
                .map_err(|status| status.as_u16());
            assert_eq!(read, expected.map(Bytes::from), "{name}");
        }
    }

    #[test]
    fn only_json_types_are_accepted() {
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
            assert!(
                check_content_type(&with(&CONTENT_TYPE, &[good])).is_ok(),
                "{good}"
            );
        }
        for bad in [
            &[][..],
            &[""],
            &["json"],
            &["text/json"],
            &["text/plain"],
            &["text/plain+json"],
            &["application/jsonp"],
            &["application/xml+json2"],
            &["application/json+xml"],
            &["application/json; charset=latin1"],
            &["application/json ; charset=utf-16;"],
            &["application/json charset=utf-8"],
            &["application /json; charset=utf-8"],
            &["application/json ; charset = utf-8"],
            &[";application/json"],
            &["application/json", "application/json"],
        ] {
            assert!(
                check_content_type(&with(&CONTENT_TYPE, bad)).is_err(),
                "{bad:?}"
            );
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

    #[test]
    fn a_refusal_names_what_was_refused() {
        let long = "x".repeat(1000);
        for (values, expected) in [
            (&[][..], "0 values of Content-Type"),
            (&["a/b", "a/b"], "2 values of Content-Type"),
            (&["text/plain"], "text/plain"),
            (&["json"], "json"),
            (&["text/plain; charset=utf-8"], "text/plain; charset=utf-8"),
            (&["application/json; charset=latin1"], "charset=latin1"),
            (&["application/json;charset=\"UTF-16\""], "charset=utf-16"),
            (
                &["application/json; charset=utf-8; charset=cp1252"],
                "charset=cp1252",
            ),
            (&[&long], &long[..64]),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            }
            let refused = check_content_type(&headers).unwrap_err().to_string();
            let message =
                "the request body must be JSON in UTF-8 (Content-Type: application/json), not";
            assert_eq!(refused, format!("{message} {expected}"), "{values:?}");
        }
        let refused = check_content_encoding(&with(&CONTENT_ENCODING, &["identity, br"]));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the request body must not be encoded, but its Content-Encoding is br"
        );
    }
}
