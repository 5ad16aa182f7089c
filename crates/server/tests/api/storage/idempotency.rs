//! `Idempotency-Key`: a repeated create returns the pet of the first one and creates no second pet.

use animal_store_test_servers::{Request, Response};
use serde_json::json;

use crate::test_app::TestApp;

const PET: &str = r#"{"name":"Rex","categoryId":5,"status":"sold"}"#;

/// A create with this key.
pub(crate) fn keyed(app: &TestApp, key: &str, body: impl AsRef<[u8]>) -> Request {
    app.request("POST", "/v1/pets").header("Idempotency-Key", key).json(body)
}

/// Asserts that the request created a pet.
#[track_caller]
pub(crate) fn assert_created(response: &Response) -> &Response {
    response.assert_status(201).assert_header("Idempotency-Replayed", None)
}

/// Asserts that the response repeats the first one.
#[track_caller]
pub(crate) fn assert_replay(response: &Response, first: &Response) {
    response.assert_status(201).assert_header("Idempotency-Replayed", Some("true"));
    assert_eq!(response.text(), first.text());
    for name in ["Location", "Content-Type", "Content-Length", "Cache-Control"] {
        response.assert_header(name, first.header(name));
    }
}

#[test]
fn a_repeated_create_has_the_same_response_and_creates_nothing() {
    let app = TestApp::start();

    let first = keyed(&app, "order-1", PET).send();
    let between = app.create(PET);
    let replays = [(); 3].map(|()| keyed(&app, "order-1", PET).send());

    assert_created(&first);
    for replay in &replays {
        assert_replay(replay, &first);
    }
    assert_eq!(app.get("/v1/pets").json(), json!([first.json(), between]));
}

#[test]
fn different_bodies_of_an_equal_pet_are_the_same_create() {
    let app = TestApp::start();
    let first = keyed(&app, "order-1", PET).send();
    assert_created(&first);

    for body in [
        " { \"name\" : \"Rex\" ,\r\n\t\"categoryId\" : 5 , \"status\" : \"sold\" } \n",
        r#"{"name":"Rex","categoryId":5,"status":"sold","colour":"brown","Name":"Tom"}"#,
        r#"{"name":"Rex","categoryId":0.5E+1,"status":"sold"}"#,
        r#"{"name":"\u0052e\u0078","categoryId":5,"status":"s\u006fld"}"#,
        first.text(),
    ] {
        assert_replay(&keyed(&app, "order-1", body).send(), &first);
    }
    let other = app.request("POST", "/v1/pets?again=1").header("idempotency-key", "order-1");
    let other = other.header("Content-Type", "application/vnd.shop+json; charset=utf-8").chunked(PET);
    assert_replay(&other.send(), &first);

    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn the_same_key_with_another_pet_is_a_422_and_creates_nothing() {
    let app = TestApp::start();
    let pet = r#"{"name":"Rex","categoryId":9007199254740993}"#;
    let first = keyed(&app, "order-1", pet).send();
    assert_created(&first);

    for other in [
        // Equal as a floating-point number.
        r#"{"name":"Rex","categoryId":9007199254740992}"#,
        r#"{"name":"Rex ","categoryId":9007199254740993}"#,
        r#"{"name":"Rex","categoryId":9007199254740993,"status":"sold"}"#,
    ] {
        let response = keyed(&app, "order-1", other).send();
        response.assert_header("Idempotency-Replayed", None).assert_header("Location", None);
        response.assert_header("Retry-After", None).assert_error(422, "idempotency_mismatch");
    }
    // The key still belongs to its own pet.
    assert_replay(&keyed(&app, "order-1", pet).send(), &first);
    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn a_key_is_free_after_every_response_but_a_201() {
    let app = TestApp::start();
    let with_key = |request: Request| request.header("Idempotency-Key", "order-1");
    let post = || with_key(app.request("POST", "/v1/pets"));
    for (request, status) in [
        (post().json("{}"), 400),
        (post().header("Idempotency-Key", "order-1").json(PET), 400),
        (post().json(" ".repeat(16_385)), 413),
        (post().body(PET), 415),
        (with_key(app.anonymous("POST", "/v1/pets")).json(PET), 401),
        (with_key(app.request("PUT", "/v1/pets")).json(PET), 405),
        (with_key(app.request("POST", "/v1/nowhere")).json(PET), 404),
    ] {
        request.send().assert_status(status).assert_header("Idempotency-Replayed", None);
    }

    let first = keyed(&app, "order-1", r#"{"name":"Tom","categoryId":6}"#).send();

    assert_created(&first);
    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn the_header_is_ignored_by_operations_that_create_nothing() {
    let app = TestApp::start();
    let first = keyed(&app, "order-1", PET).send();
    let path = format!("/v1/{}", first.header("Location").expect("a Location"));

    for key in ["order-1", "", "\"", "a b"] {
        for path in ["/v1/pets", &path] {
            let response = app.request("GET", path).header("Idempotency-Key", key).send();
            response.assert_status(200).assert_header("Idempotency-Replayed", None);
        }
    }
}
