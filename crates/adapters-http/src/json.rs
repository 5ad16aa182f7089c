use actix_web::{
    HttpResponse, HttpResponseBuilder,
    body::MessageBody,
    http::header::{CONTENT_TYPE, HeaderValue},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Completes a response with a body that is JSON.
pub(crate) fn json(response: &mut HttpResponseBuilder, body: impl MessageBody + 'static) -> HttpResponse {
    response.insert_header((CONTENT_TYPE, JSON)).body(body)
}
