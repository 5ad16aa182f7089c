//! Requests that create pets.

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, Request, Response};

pub(crate) fn create_request(address: SocketAddr, token: &str, name: &str) -> Request {
    let body = format!(r#"{{"name":"{name}","categoryId":1}}"#);
    HttpClient::new(address).with_token(token).request("POST", "/v1/pets").json(body)
}

/// A [`create_request`] with an idempotency key.
pub(crate) fn keyed_create_request(address: SocketAddr, token: &str, key: &str, name: &str) -> Request {
    create_request(address, token, name).header("Idempotency-Key", key)
}

pub(crate) fn is_replay(response: &Response) -> bool {
    response.header("Idempotency-Replayed") == Some("true")
}
