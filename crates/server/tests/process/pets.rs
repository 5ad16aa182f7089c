//! Requests about pets, with the API key [`TOKEN`].

use crate::prelude::*;

fn client(address: SocketAddr) -> HttpClient {
    HttpClient::new(address).with_token(TOKEN)
}

pub(crate) fn create_request(address: SocketAddr, name: &str) -> Request {
    client(address)
        .request("POST", "/v1/pets")
        .json(format!(r#"{{"name":"{name}","categoryId":1}}"#))
}

/// Sends the head of a create, and of its body nothing. The service responds with 100.
#[track_caller]
pub(crate) fn begin_create(address: SocketAddr) -> RawConnection {
    client(address).request("POST", "/v1/pets").begin_json(29)
}

/// A [`create_request`] with an idempotency key.
pub(crate) fn keyed_create_request(address: SocketAddr, key: &str, name: &str) -> Request {
    create_request(address, name).header("Idempotency-Key", key)
}

pub(crate) fn is_replay(response: &Response) -> bool {
    response.header("Idempotency-Replayed") == Some("true")
}

/// Returns the status code of a list with this token.
#[track_caller]
pub(crate) fn status(address: SocketAddr, token: &str) -> u16 {
    let client = HttpClient::new(address).with_token(token);
    client.get("/v1/pets").status
}

/// Returns the body of every page, as a client that follows the links gets it.
#[track_caller]
pub(crate) fn pages(address: SocketAddr) -> Vec<String> {
    let mut pages = Vec::new();
    let mut path = "/v1/pets?limit=100".to_owned();
    loop {
        let response = client(address).get(&path);
        pages.push(response.assert_status(200).text().to_owned());
        let Some(link) = response.header("Link") else {
            return pages;
        };
        let reference = link.split(['<', '>']).nth(1).expect("a reference");
        path = format!("/v1/pets{reference}");
    }
}

/// Returns every pet, page by page.
#[track_caller]
pub(crate) fn list_all(address: SocketAddr) -> Vec<Value> {
    let pages = pages(address);
    let pets = |page: &String| serde_json::from_str::<Vec<Value>>(page).expect("a list");
    pages.iter().flat_map(pets).collect()
}
