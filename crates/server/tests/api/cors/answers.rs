//! What every answer says of origins, whatever it answers.

use super::{DEVELOPER, FOREIGN, SHOP, VARIES, app};
use crate::{
    client::{Request, Response},
    headers::everywhere,
    idempotency::keyed,
    raw_connection::RawConnection,
    raw_requests::{animal, begin_post, post_head},
    test_app::TestApp,
};

const EXPOSED: [&str; 8] = [
    "deprecation",
    "idempotency-replayed",
    "link",
    "location",
    "retry-after",
    "sunset",
    "www-authenticate",
    "x-request-id",
];

/// A page of this origin may read the answer.
#[track_caller]
fn assert_readable(response: &Response, origin: &str) {
    response.assert_header("Access-Control-Allow-Origin", Some(origin));
    assert_eq!(response.items("Access-Control-Expose-Headers"), EXPOSED);
    assert_varies(response);
}

/// No page may read the answer, and a cache knows that this depends on who asks.
#[track_caller]
fn assert_not_readable(response: &Response) {
    response.assert_header("Access-Control-Allow-Origin", None);
    assert_varies(response);
}

#[track_caller]
fn assert_varies(response: &Response) {
    response.assert_header("Access-Control-Allow-Credentials", None);
    let varies = response.items("Vary");
    assert!(VARIES.iter().all(|name| varies.iter().any(|item| item == name)), "{response:?}");
}

/// Those of [`everywhere`], and for what has to be prepared.
fn requests(app: &TestApp) -> Vec<(Request, u16)> {
    keyed(app, "order-1", animal("Rex")).send().assert_status(201);
    let mut requests = everywhere(app);
    requests.extend([
        (keyed(app, "order-1", animal("Rex")), 201),
        (keyed(app, "order-1", animal("Tom")), 422),
        (app.request("POST", "/v1/pets").json(animal("Tom")).header("Idempotency-Key", "a b"), 400),
        (app.request("POST", "/v1/pets").json("{"), 400),
        (app.request("GET", "/v1/pets?limit=100"), 200),
        (app.request("PROPFIND", "/v1/pets"), 405),
        (app.anonymous("GET", "/v1/pets").header("Authorization", "Bearer unknown"), 401),
        (app.anonymous("GET", "/"), 302),
        (app.anonymous("GET", "/docs/explorer.js"), 200),
        (app.anonymous("POST", "/docs"), 405),
    ]);
    requests
}

#[test]
fn a_page_of_an_allowed_origin_may_read_every_answer() {
    let app = app();

    for origin in [SHOP, DEVELOPER] {
        for (request, status) in requests(&app) {
            assert_readable(request.header("Origin", origin).send().assert_status(status), origin);
        }
    }
}

#[test]
fn a_page_of_another_origin_may_read_no_answer() {
    let app = app();

    for (request, status) in requests(&app) {
        assert_not_readable(request.header("Origin", FOREIGN).send().assert_status(status));
    }
}

#[test]
fn a_request_of_no_page_is_answered_as_ever() {
    let app = app();

    for (request, status) in requests(&app) {
        assert_not_readable(request.send().assert_status(status));
    }
}

#[test]
fn whoever_asks_a_list_also_varies_by_its_form() {
    let app = app();

    for origin in [SHOP, FOREIGN] {
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        let mut varies = VARIES.to_vec();
        varies.insert(0, "accept-encoding");
        varies.sort_unstable();
        assert_eq!(response.items("Vary"), varies);
    }
}

#[test]
fn an_animal_of_a_foreign_page_is_added_and_only_its_answer_is_kept_from_it() {
    let app = app();

    let response = app.request("POST", "/v1/pets").json(animal("Rex")).header("Origin", FOREIGN).send();

    assert_not_readable(response.assert_status(201));
    assert_eq!(app.get("/v1/pets").ids().len(), 1);
}

#[test]
fn a_page_may_read_that_the_service_is_too_busy() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1"), ("http.cors_origins", SHOP)]);
    let slow = begin_post(&app, "Content-Length: 30\r\n");

    let response = app.request("GET", "/v1/pets").header("Origin", SHOP).send();
    response.assert_error(503, "overloaded");
    assert_readable(&response, SHOP);
    let foreign = app.request("GET", "/v1/pets").header("Origin", FOREIGN).send();
    foreign.assert_error(503, "overloaded");
    assert_not_readable(&foreign);
    drop(slow);
}

#[test]
fn a_page_may_read_that_its_body_was_too_slow() {
    let app = TestApp::start_with(&[("http.body_timeout", "300ms"), ("http.cors_origins", SHOP)]);
    for (origin, allowed) in [(SHOP, Some(SHOP)), (FOREIGN, None)] {
        let mut connection = RawConnection::open(app.address);
        connection.send(post_head(&format!("Origin: {origin}\r\nContent-Length: 10000\r\n")));

        let response = connection.response();

        response.assert_error(408, "request_timeout");
        assert_eq!(response.header("access-control-allow-origin"), allowed, "{response:?}");
        assert!(response.header("vary").is_some_and(|value| value.contains("Origin")), "{response:?}");
    }
}
