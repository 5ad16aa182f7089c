//! The API key of every request under `/v1`. The unit tests of the token and of the header cover every form.

use animal_store_test_servers::Response;
use serde_json::json;

use crate::test_app::{OTHER_TOKEN, PET, TOKEN, TestApp};

const NO_KEY: &str = r#"Bearer realm="animal-store""#;
const MALFORMED_KEY: &str = r#"Bearer realm="animal-store", error="invalid_request""#;
const UNKNOWN_KEY: &str = r#"Bearer realm="animal-store", error="invalid_token""#;

const OPERATIONS: [(&str, &str); 5] =
    [("GET", "/v1/pets"), ("HEAD", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/pets/1"), ("HEAD", "/v1/pets/1")];

/// Sends an operation with these `Authorization` headers.
#[track_caller]
fn send(app: &TestApp, (method, path): (&str, &str), authorization: &[&str]) -> Response {
    let request = app.anonymous(method, path);
    let request = authorization.iter().fold(request, |request, value| request.header("Authorization", value));
    if method == "POST" { request.json(PET).send() } else { request.send() }
}

#[track_caller]
fn assert_refused(app: &TestApp, authorization: &[&str], code: &str, challenge: &str) {
    for operation in OPERATIONS {
        let response = send(app, operation, authorization);
        response.assert_status(401).assert_header("WWW-Authenticate", Some(challenge));
        if operation.0 == "HEAD" {
            assert!(response.body.is_empty());
        } else {
            response.assert_error(401, code);
        }
    }
}

#[test]
fn a_missing_malformed_or_unknown_key_is_a_401_in_every_operation() {
    let app = TestApp::start();

    assert_refused(&app, &[], "missing_api_key", NO_KEY);
    assert_refused(&app, &["Basic dGVzdDp0ZXN0"], "missing_api_key", NO_KEY);
    for malformed in ["Bearer", "Bearer a b", &format!("Bearer {}", "x".repeat(513))] {
        assert_refused(&app, &[malformed], "invalid_api_key", MALFORMED_KEY);
    }
    assert_refused(&app, &["Bearer test-token-1", "Bearer test-token-1"], "invalid_api_key", MALFORMED_KEY);
    for unknown in ["Bearer Test-Token-1", &format!("Bearer {}", "x".repeat(512))] {
        assert_refused(&app, &[unknown], "invalid_api_key", UNKNOWN_KEY);
    }
    assert_eq!(app.get("/v1/pets").text(), "[]");
}

#[test]
fn a_valid_key_allows_every_operation_with_the_scheme_in_any_case() {
    let app = TestApp::start();
    let pet = format!("/v1/pets/{}", app.create_pet(None));

    let key = [&*format!("bearer  {TOKEN}")];
    for method in ["GET", "HEAD"] {
        send(&app, (method, "/v1/pets"), &key).assert_status(200);
        send(&app, (method, &pet), &key).assert_status(200);
    }
    send(&app, ("POST", "/v1/pets"), &key).assert_status(201).assert_header("WWW-Authenticate", None);
}

#[test]
fn every_key_sees_the_same_pets() {
    let app = TestApp::start();
    let first = app.create(r#"{"name":"Rex","categoryId":7,"status":"sold"}"#);
    let other = [&*format!("Bearer {OTHER_TOKEN}")];

    let second = send(&app, ("POST", "/v1/pets"), &other).assert_status(201).json();

    let by_id = send(&app, ("GET", &format!("/v1/pets/{}", first["id"])), &other);
    assert_eq!(by_id.assert_status(200).json(), first);
    assert_eq!(send(&app, ("GET", "/v1/pets"), &other).json(), json!([first, second]));
    assert_eq!(app.get("/v1/pets").json(), json!([first, second]));
}

#[test]
fn a_key_outside_of_authorization_is_ignored() {
    let app = TestApp::start();

    for request in [
        app.anonymous("GET", &format!("/v1/pets?access_token={TOKEN}")),
        app.anonymous("GET", "/v1/pets").header("X-Api-Key", TOKEN),
        app.anonymous("GET", "/v1/pets").header("Cookie", &format!("access_token={TOKEN}")),
        app.anonymous("GET", "/v1/pets").header("Proxy-Authorization", &format!("Bearer {TOKEN}")),
    ] {
        request.send().assert_header("WWW-Authenticate", Some(NO_KEY)).assert_error(401, "missing_api_key");
    }
}
