//! Reads a request body completely, and checks its type, size and timeout.

use std::rc::Rc;

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    web::{Bytes, BytesMut, Data, Payload},
};
use futures_util::StreamExt;
use mime::Mime;

use crate::{
    error::{ApiError, Problems},
    limits::Limits,
    middleware::in_flight::InFlight,
    transport::connection::Connection,
};

/// Reads a body with a JSON content type within the limits. The request is not in flight until its body is here.
pub(crate) async fn read_json(request: &HttpRequest, payload: Payload) -> Result<Bytes, ApiError> {
    let limits = request.app_data::<Limits>().expect("`serve_api` sets the limits");
    let in_flight = request.app_data::<Data<InFlight>>().expect("`serve_api` sets the count");
    let reading = read(request.headers(), payload, limits.max_body_bytes);
    let deadline = request.extensions().get::<Rc<Connection>>().expect("a connection").body_deadline.get();
    let reading = tokio::time::timeout_at(deadline, reading);
    in_flight.read_body(async { reading.await.map_err(|_| ApiError::RequestTimeout)? }).await
}

/// Fails as early as possible: with 400 if there is no body, then with 415, then with 413.
async fn read(headers: &HeaderMap, mut payload: Payload, max_bytes: usize) -> Result<Bytes, ApiError> {
    let declared = declared_length(headers);
    // Without a declared length, only the first chunk shows whether there is a body.
    let first = match declared {
        Some(1..) => None,
        _ => Some(next_chunk(&mut payload).await?.ok_or_else(missing_body)?),
    };
    check_content_encoding(headers)?;
    check_content_type(headers)?;
    if declared.is_some_and(|length| length > max_bytes as u64) {
        return Err(ApiError::PayloadTooLarge(max_bytes));
    }

    let mut body = BytesMut::from(first.unwrap_or_default());
    loop {
        if body.len() > max_bytes {
            return Err(ApiError::PayloadTooLarge(max_bytes));
        }
        // With `Upgrade: websocket`, actix does not end the body after its declared length.
        if declared == Some(body.len() as u64) {
            return Ok(body.freeze());
        }
        let Some(chunk) = next_chunk(&mut payload).await? else { return Ok(body.freeze()) };
        body.extend_from_slice(&chunk);
    }
}

async fn next_chunk(payload: &mut Payload) -> Result<Option<Bytes>, ApiError> {
    payload.next().await.transpose().map_err(|_| ApiError::MalformedRequest)
}

fn missing_body() -> ApiError {
    ApiError::InvalidBody(Problems::one("a request body is required: a pet as a JSON object"))
}

/// Length of the body according to its header. actix refuses a header that is not a number.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn check_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let identity = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).all(identity) { Ok(()) } else { Err(ApiError::UnsupportedContentEncoding) }
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
        parameters.fold(essence, |text, parameter| text + ";" + parameter).parse().ok()
    })
}

/// `application/json` or `application/*+json`, in UTF-8: JSON has no other encoding (RFC 8259, section 8.1).
fn is_json(mime: &Mime) -> bool {
    mime.type_() == mime::APPLICATION
        && mime.suffix().unwrap_or(mime.subtype()) == mime::JSON
        && mime.get_param(mime::CHARSET).is_none_or(|charset| charset == mime::UTF_8)
}

/// Value of a header that is given exactly once.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use actix_web::{FromRequest, ResponseError, dev, error::PayloadError, test::TestRequest};
    use futures_util::{
        FutureExt,
        stream::{iter, pending},
    };

    use super::*;

    const MAX_BYTES: usize = 4;

    /// Reads a body that the client sends up to here. `None`: the rest of the body is necessary.
    fn read_sent(headers: &HeaderMap, sent: &'static [&'static str]) -> Option<Result<Bytes, ApiError>> {
        let chunks = iter(sent).map(|chunk| Ok::<_, PayloadError>(Bytes::from_static(chunk.as_bytes())));
        let mut payload = dev::Payload::Stream { payload: chunks.chain(pending()).boxed_local() };
        let request = TestRequest::default().to_http_request();
        let payload = Payload::from_request(&request, &mut payload).now_or_never()?.expect("a payload");
        read(headers, payload, MAX_BYTES).now_or_never()
    }

    fn with(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_body_is_read_up_to_its_length_and_refused_at_the_first_byte_beyond_the_maximum() {
        for (length, sent, expected) in [
            (Some("4"), &["ab", "cd"][..], Some(Ok("abcd"))),
            (Some("3"), &["ab"], None),
            (Some("5"), &[], Some(Err(413))),
            (None, &["ab", "cd"], None),
            (None, &["ab", "cde"], Some(Err(413))),
        ] {
            let mut headers = with(&CONTENT_TYPE, &["application/json"]);
            if let Some(length) = length {
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static(length));
            }
            let read = read_sent(&headers, sent);
            let read = read.map(|body| body.map_err(|error| error.status_code().as_u16()));
            assert_eq!(read, expected.map(|body| body.map(Bytes::from)), "{length:?} {sent:?}");
        }
    }

    #[test]
    fn the_type_of_a_body_of_known_length_is_refused_before_its_first_byte() {
        let read = read_sent(&with(&CONTENT_LENGTH, &["4"]), &[]);
        assert!(matches!(read, Some(Err(ApiError::UnsupportedContentType))));
    }

    #[test]
    fn json_types_are_accepted() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json\t;\tcharset=\"utf-8\" ; x=y",
            "application/json ; ; charset=utf-8;;",
            "application/merge-patch+json; charset=utf-8",
        ] {
            assert!(check_content_type(&with(&CONTENT_TYPE, &[good])).is_ok(), "{good}");
        }
    }

    #[test]
    fn any_other_type_is_refused() {
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
            assert!(check_content_type(&with(&CONTENT_TYPE, bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_an_unencoded_body_is_accepted() {
        for good in [&[][..], &["identity"], &["Identity"]] {
            assert!(check_content_encoding(&with(&CONTENT_ENCODING, good)).is_ok(), "{good:?}");
        }
        for bad in [&["gzip"][..], &["br"], &["identity, gzip"], &["identity", "gzip"], &[""]] {
            assert!(check_content_encoding(&with(&CONTENT_ENCODING, bad)).is_err(), "{bad:?}");
        }
    }
}
