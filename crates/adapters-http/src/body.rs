//! Checks the type, the size and the timeout of a request body.

use actix_web::{
    HttpRequest,
    error::PayloadError,
    http::header::{
        CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    },
    web::{Bytes, Data, Payload},
};
use futures_util::StreamExt;
use mime::Mime;

use crate::{auth::RequestLimits, error::ApiError};

/// Returns a body with a JSON content type within the limits. The request is not in flight until its body is here.
pub(crate) async fn read_json(request: &HttpRequest, payload: Payload) -> Result<Bytes, ApiError> {
    let limits = request
        .app_data::<Data<RequestLimits>>()
        .expect("`serve_api` sets the limits");
    limits
        .in_flight
        .read_body(read(request.headers(), payload, limits.max_body_bytes))
        .await
}

/// Fails with 400 if there is no body, then with 415, then with the error of the transport, which passes on a body as a
/// whole or not at all.
async fn read(
    headers: &HeaderMap,
    mut payload: Payload,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    // Before the body, because a client that waits for a 100 need not send it.
    if declared_length(headers).is_some_and(|length| length > 0) {
        check_headers(headers)?;
    }
    let body = payload.next().await.unwrap_or(Ok(Bytes::new()));
    if body.as_ref().is_ok_and(Bytes::is_empty) {
        return Err(ApiError::InvalidBody(
            "a request body is required: a pet as a JSON object".into(),
        ));
    }
    check_headers(headers)?;
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

fn check_headers(headers: &HeaderMap) -> Result<(), ApiError> {
    check_content_encoding(headers)?;
    check_content_type(headers)
}

fn check_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let identity = |value: &HeaderValue| {
        value
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"identity")
    };
    if headers.get_all(CONTENT_ENCODING).all(identity) {
        Ok(())
    } else {
        Err(ApiError::UnsupportedContentEncoding)
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    match single(headers, CONTENT_TYPE).and_then(|value| parse_media_type(value.to_str().ok()?)) {
        Some(mime) if is_json(&mime) => Ok(()),
        _ => Err(ApiError::UnsupportedContentType),
    }
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

/// `application/json` or `application/*+json`, in UTF-8: JSON has no other encoding (RFC 8259, section 8.1).
fn is_json(mime: &Mime) -> bool {
    mime.type_() == mime::APPLICATION
        && mime.suffix().unwrap_or(mime.subtype()) == mime::JSON
        && mime
            .get_param(mime::CHARSET)
            .is_none_or(|charset| charset == mime::UTF_8)
}

/// Value of a header that is given exactly once.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use actix_web::{FromRequest, ResponseError, dev, http::StatusCode, test::TestRequest};
    use futures_util::{
        FutureExt, Stream,
        stream::{iter, pending},
    };

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
    fn the_type_of_a_body_of_known_length_is_refused_before_it_is_read() {
        let read = read_passed(&with(&CONTENT_LENGTH, &["4"]), pending());
        assert_eq!(read, Some(Err(StatusCode::UNSUPPORTED_MEDIA_TYPE)));
        assert_eq!(
            read_passed(&with(&CONTENT_TYPE, &["application/json"]), pending()),
            None
        );
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
        for good in [&[][..], &["identity"], &["Identity"]] {
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
            &[""],
        ] {
            assert!(
                check_content_encoding(&with(&CONTENT_ENCODING, bad)).is_err(),
                "{bad:?}"
            );
        }
    }
}
