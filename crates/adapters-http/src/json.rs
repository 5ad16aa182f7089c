use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::header::{CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Completes a response with a JSON body, which usually has at most this number of bytes.
pub(crate) fn json(response: &mut HttpResponseBuilder, body: &impl Serialize, usual_bytes: usize) -> HttpResponse {
    let mut bytes = Vec::with_capacity(usual_bytes);
    serde_json::to_writer(&mut bytes, body).expect("every body can be serialised");
    response.insert_header((CONTENT_TYPE, JSON)).body(bytes)
}
