//! Headers that every answer carries, whatever it answers.

use std::collections::BTreeSet;

use crate::{
    client::{Request, Response},
    test_app::TestApp,
};

/// A request for every status that a request alone can cause, under `/v1`.
fn under_v1(app: &TestApp) -> Vec<(Request, u16)> {
    let id = app.add(None);
    let animal = r#"{"name":"Rex","categoryId":7}"#;
    vec![
        (app.request("GET", "/v1/pets"), 200),
        (app.request("HEAD", "/v1/pets"), 200),
        (app.request("POST", "/v1/pets").json(animal), 201),
        (app.request("GET", &format!("/v1/pets/{id}")), 200),
        (app.request("POST", "/v1/pets").json("{}"), 400),
        (app.request("GET", "/v1/pets?limit=0"), 400),
        (app.anonymous("GET", "/v1/pets"), 401),
        (app.anonymous("GET", "/v1/nowhere"), 401),
        (app.request("GET", "/v1/pets/abc"), 404),
        (app.request("GET", "/v1/nowhere"), 404),
        (app.request("GET", "/v1"), 404),
        (app.request("DELETE", "/v1/pets"), 405),
        (app.request("DELETE", &format!("/v1/pets/{id}")), 405),
        (app.request("POST", "/v1/pets").json("x".repeat(16_385)), 413),
        (app.request("POST", "/v1/pets").body(animal), 415),
    ]
}

fn outside_of_v1(app: &TestApp) -> Vec<(Request, u16)> {
    vec![
        (app.anonymous("GET", "/nowhere"), 404),
        (app.request("GET", "/pets"), 404),
        (app.request("POST", "/"), 405),
        (app.anonymous("GET", "/docs"), 200),
        (app.anonymous("GET", "/docs/nothing"), 404),
        (app.anonymous("GET", "/openapi.json"), 200),
    ]
}

/// A request for every status that a request alone can cause.
pub(crate) fn everywhere(app: &TestApp) -> Vec<(Request, u16)> {
    let mut requests = under_v1(app);
    requests.extend(outside_of_v1(app));
    requests
}

#[track_caller]
fn request_id(response: &Response) -> String {
    response.header("X-Request-Id").unwrap_or_else(|| panic!("a request id: {response:?}")).to_owned()
}

fn is_fit(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte))
}

#[test]
fn a_request_id_is_echoed_whatever_is_answered() {
    let app = TestApp::start();

    for (request, status) in everywhere(&app) {
        let response = request.header("X-Request-Id", "Abc.123_~-").send();
        response.assert_status(status).assert_header("X-Request-Id", Some("Abc.123_~-"));
    }
}

#[test]
fn a_request_id_is_made_where_none_is_given() {
    let app = TestApp::start();

    let mut ids = BTreeSet::new();
    for (request, status) in everywhere(&app) {
        let id = request_id(request.send().assert_status(status));
        assert!(is_fit(&id), "{id}");
        assert!(ids.insert(id.clone()), "{id} is given twice");
    }
}

#[test]
fn a_request_id_has_1_to_128_characters_of_its_alphabet() {
    let app = TestApp::start();

    let longest = "x".repeat(128);
    let alphabet: String = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain("._~-".chars()).collect();
    for id in ["a", "0", "-", &longest, &alphabet, "0195c1b0-7d6a-7cc1-a1d2-0123456789ab"] {
        app.request("GET", "/v1/pets").header("X-Request-Id", id).send().assert_header("X-Request-Id", Some(id));
    }
}

#[test]
fn any_other_request_id_is_replaced() {
    let app = TestApp::start();

    let too_long = "x".repeat(129);
    for id in ["", "a b", "a,b", "a/b", "a:b", "<script>", "a\"b", "a\tb", "{}", "a=b", "a+b", "a@b", &too_long] {
        let response = app.request("GET", "/v1/pets").header("X-Request-Id", id).send();
        let made = request_id(response.assert_status(200));
        assert_ne!(made, id);
        assert!(is_fit(&made), "{made}");
    }
}

#[test]
fn no_answer_may_be_taken_for_another_type() {
    let app = TestApp::start();

    for (request, status) in everywhere(&app) {
        request.send().assert_status(status).assert_header("X-Content-Type-Options", Some("nosniff"));
    }
}

#[test]
fn no_answer_under_v1_is_kept_by_a_cache() {
    let app = TestApp::start();

    for (request, status) in under_v1(&app) {
        request.send().assert_status(status).assert_header("Cache-Control", Some("no-store"));
    }
}

#[test]
fn what_caches_do_outside_of_v1_is_left_to_them() {
    let app = TestApp::start();

    for (request, status) in outside_of_v1(&app) {
        request.send().assert_status(status).assert_header("Cache-Control", None);
    }
}

#[test]
fn only_a_new_animal_has_a_location() {
    let app = TestApp::start();

    for (request, status) in everywhere(&app) {
        let response = request.send();
        assert_eq!(response.assert_status(status).header("Location").is_some(), status == 201, "{response:?}");
    }
}
