//! The CORS headers of every response, except responses to preflights.

use std::time::Duration;

use animal_store_test_servers::{Request, Response};

use super::{DEVELOPER, FOREIGN, SHOP, VARY, app};
use crate::{
    headers::requests_of_every_status,
    raw_requests::{fields, pet, post_head},
    storage::idempotency::keyed,
    test_app::TestApp,
};

const EXPOSED: [&str; 10] = [
    "deprecation",
    "idempotency-replayed",
    "link",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "sunset",
    "www-authenticate",
    "x-request-id",
];

/// Asserts that a page of this origin may read the response.
#[track_caller]
fn assert_readable(response: &Response, origin: &str) {
    response.assert_header("Access-Control-Allow-Origin", Some(origin));
    assert_eq!(response.items("Access-Control-Expose-Headers"), EXPOSED);
    assert_varies(response);
}

/// Asserts that no page may read the response, and that caches keep it apart from readable ones.
#[track_caller]
fn assert_not_readable(response: &Response) {
    response.assert_header("Access-Control-Allow-Origin", None);
    assert_varies(response);
}

#[track_caller]
fn assert_varies(response: &Response) {
    response.assert_header("Access-Control-Allow-Credentials", None);
    let items = response.items("Vary");
    assert!(VARY.iter().all(|name| items.iter().any(|item| item == name)), "{response:?}");
}

/// The requests of [`requests_of_every_status`], and some that need preparation.
fn requests(app: &TestApp) -> Vec<(Request, u16)> {
    keyed(app, "order-1", pet("Rex")).send().assert_status(201);
    let mut requests = requests_of_every_status(app);
    requests.extend([
        (keyed(app, "order-1", pet("Rex")), 201),
        (keyed(app, "order-1", pet("Tom")), 422),
        (app.request("POST", "/v1/pets").json(pet("Tom")).header("Idempotency-Key", "a b"), 400),
        (app.request("PROPFIND", "/v1/pets"), 405),
        (app.anonymous("GET", "/v1/pets").header("Authorization", "Bearer unknown"), 401),
        (app.anonymous("GET", "/"), 302),
        (app.anonymous("GET", "/docs/explorer.js"), 200),
        (app.anonymous("POST", "/docs"), 405),
    ]);
    requests
}

#[test]
fn a_page_of_an_allowed_origin_may_read_every_response() {
    let app = app();

    for (request, status) in requests(&app) {
        assert_readable(request.header("Origin", DEVELOPER).send().assert_status(status), DEVELOPER);
    }
}

#[test]
fn without_an_allowed_origin_no_page_may_read_a_response() {
    let app = app();

    for (request, status) in requests(&app) {
        assert_not_readable(request.send().assert_status(status));
    }
    for (request, status) in requests(&app) {
        assert_not_readable(request.header("Origin", FOREIGN).send().assert_status(status));
    }
}

#[test]
fn a_list_varies_by_accept_encoding_as_well() {
    let app = app();

    for origin in [SHOP, FOREIGN] {
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        assert_eq!(response.items("Vary"), [&["accept-encoding"], &VARY[..]].concat());
    }
}

#[test]
fn a_body_timeout_is_readable_for_an_allowed_page() {
    let app = TestApp::start_limited(&[("http.cors_origins", SHOP)], |limits| {
        limits.body_timeout = Duration::from_millis(100);
    });
    let mut connections =
        [SHOP, FOREIGN].map(|origin| app.send(post_head(&format!("Origin: {origin}\r\nContent-Length: 10000\r\n"))));

    for (connection, allowed) in connections.iter_mut().zip([Some(SHOP), None]) {
        let response = connection.response();
        response.assert_error(408, "request_timeout");
        response.assert_header("Access-Control-Allow-Origin", allowed);
        assert_varies(&response);
    }
}

#[test]
fn of_two_origins_only_an_allowed_one_is_ever_returned() {
    let app = app();

    for (first, second) in [(SHOP, FOREIGN), (FOREIGN, SHOP), ("null", SHOP)] {
        for start in ["GET /v1/pets HTTP/1.1", "OPTIONS /v1/pets HTTP/1.1\r\nAccess-Control-Request-Method: GET"] {
            let request = format!("{start}\r\n{}Origin: {first}\r\nOrigin: {second}\r\n\r\n", fields());
            let response = app.send(request).response();
            response.assert_status(200);
            assert!(response.header("Access-Control-Allow-Origin").is_none_or(|origin| origin == SHOP), "{response:?}");
        }
    }
}
