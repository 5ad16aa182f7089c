//! The body of a request: its type, and why it has not arrived.

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::HeaderMap,
    web::{Bytes, Data},
};
use animal_store_http1::{BodyError, ReceivedBody};

use crate::{content_type, error::ApiError, request_limits::RequestLimits};

/// Returns a body with a JSON content type within the limits.
pub(crate) fn read_json(request: &HttpRequest) -> Result<Bytes, ApiError> {
    let limits = request
        .app_data::<Data<RequestLimits>>()
        .expect("`serve_api` sets the limits");
    let received = request.extensions_mut().remove::<ReceivedBody>();
    read(request.headers(), received, limits.max_body_bytes)
}

/// Fails with 400 if there is no body, then with 415, then because it has not arrived as a whole.
fn read(
    headers: &HeaderMap,
    received: Option<ReceivedBody>,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    let Some(ReceivedBody(body)) = received else {
        return Err(ApiError::InvalidBody(
            "a request body is required: a pet as a JSON object".into(),
        ));
    };
    content_type::check(headers)?;
    body.map_err(|error| match error {
        BodyError::TooLarge => ApiError::PayloadTooLarge(max_bytes),
        BodyError::TooSlow => ApiError::RequestTimeout,
        BodyError::Malformed => ApiError::MalformedRequest,
    })
}

#[cfg(test)]
mod tests {
    use actix_web::{
        ResponseError,
        http::header::{CONTENT_TYPE, HeaderValue},
    };

    use super::*;

    #[test]
    fn a_body_is_refused_because_it_is_missing_then_by_its_type_then_by_its_arrival() {
        for (content_type, body, expected) in [
            ("application/json", Some(Ok("abcd")), Ok("abcd")),
            ("text/plain", None, Err(400)),
            ("text/plain", Some(Err(BodyError::TooLarge)), Err(415)),
            ("application/json", Some(Err(BodyError::TooLarge)), Err(413)),
            ("application/json", Some(Err(BodyError::TooSlow)), Err(408)),
            (
                "application/json",
                Some(Err(BodyError::Malformed)),
                Err(400),
            ),
        ] {
            let value = HeaderValue::from_static(content_type);
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value)]);
            let received = body.map(|body| ReceivedBody(body.map(Bytes::from)));
            let read = read(&headers, received, 4).map_err(|error| error.status_code().as_u16());
            assert_eq!(read, expected.map(Bytes::from), "{content_type} {body:?}");
        }
    }
}
