//! Headers of every response.

use std::collections::BTreeSet;

use crate::prelude::*;

/// Requests under `/v1` for every status that a single request can cause.
fn under_v1(app: &TestApp) -> Vec<(Request, u16)> {
    let pet = app.create_pet();
    vec![
        (app.request("GET", "/v1/pets"), 200),
        (app.request("HEAD", "/v1/pets"), 200),
        (app.request("POST", "/v1/pets").json(PET), 201),
        (app.request("GET", &pet), 200),
        (app.request("POST", "/v1/pets").json("{}"), 400),
        (app.request("GET", "/v1/pets?limit=0"), 400),
        (app.anonymous("GET", "/v1/pets"), 401),
        (app.anonymous("GET", "/v1/nowhere"), 401),
        (app.request("GET", "/v1/pets/abc"), 404),
        (app.request("GET", "/v1/nowhere"), 404),
        (app.request("GET", "/v1"), 404),
        (app.request("PROPFIND", "/v1/pets"), 405),
        (app.request("PROPFIND", &pet), 405),
        (
            app.request("POST", "/v1/pets").json("x".repeat(16_385)),
            413,
        ),
        (app.request("POST", "/v1/pets").body(PET), 415),
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

/// A request for every status that a single request can cause, with that status.
pub(crate) fn requests_of_every_status(app: &TestApp) -> Vec<(Request, u16)> {
    let mut requests = under_v1(app);
    requests.extend(outside_of_v1(app));
    requests
}

#[test]
fn every_response_has_the_request_id_of_the_client_or_a_new_one() {
    let app = TestApp::start();
    for (request, status) in requests_of_every_status(&app) {
        let response = request.header("X-Request-Id", "Abc.123_~-").send();
        response
            .assert_status(status)
            .assert_header("X-Request-Id", Some("Abc.123_~-"));
    }
    let mut ids = BTreeSet::new();
    for (request, _) in requests_of_every_status(&app) {
        let response = request.send();
        let id = response.header("X-Request-Id").expect("a request id");
        assert!(ids.insert(id.to_owned()), "{id} is given twice");
    }
}

#[test]
fn every_response_forbids_sniffing_none_under_v1_may_be_cached_and_only_a_201_has_a_location() {
    let app = TestApp::start();
    for (request, status) in outside_of_v1(&app) {
        let is_page = status == 200;
        let response = request.send();
        response
            .assert_status(status)
            .assert_header("Cache-Control", is_page.then_some("no-cache"))
            .assert_header("X-Content-Type-Options", Some("nosniff"))
            .assert_header("Location", None);
    }
    for (request, status) in under_v1(&app) {
        let request = request.header("Accept", "application/xml, application/json;q=0");
        let response = request.send();
        response
            .assert_status(status)
            .assert_header("Cache-Control", Some("no-store"))
            .assert_header("X-Content-Type-Options", Some("nosniff"))
            .assert_header("Content-Type", Some("application/json"));
        let has_location = response.header("Location").is_some();
        assert_eq!(has_location, status == 201, "{response:?}");
    }
}
