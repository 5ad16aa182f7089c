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
fn a_request_without_a_key_is_a_401_in_every_operation() {
    let app = TestApp::start();

    assert_refused(&app, &[], "missing_api_key", NO_KEY);
    for other_scheme in ["", "Basic dGVzdDp0ZXN0", "test-token-1", "Bearertest-token-1", "Bearer:test-token-1"] {
        assert_refused(&app, &[other_scheme], "missing_api_key", NO_KEY);
    }
    assert_eq!(app.get("/v1/pets").text(), "[]");
}

#[test]
fn a_malformed_token_is_an_invalid_key() {
    let app = TestApp::start();
    let too_long = "x".repeat(513);

    for token in ["", "a b", "=", "test-token-1, Bearer test-token-1", &too_long] {
        assert_refused(&app, &[&format!("Bearer {token}")], "invalid_api_key", MALFORMED_KEY);
    }
    assert_refused(&app, &["Bearer"], "invalid_api_key", MALFORMED_KEY);
}

#[test]
fn an_unknown_token_is_an_invalid_key() {
    let app = TestApp::start();
    let longest = "x".repeat(512);

    for token in ["x", "test-token", "test-token-11", "Test-Token-1", "test-token-1=", "-._~+/==", &longest] {
        assert_refused(&app, &[&format!("Bearer {token}")], "invalid_api_key", UNKNOWN_KEY);
    }
}

#[test]
fn a_valid_key_allows_every_operation_with_the_scheme_in_any_case() {
    let app = TestApp::start();
    let pet = format!("/v1/pets/{}", app.create_pet(None));

    for scheme in ["Bearer", "bearer", "BEARER", "Bearer  "] {
        let key = [&*format!("{scheme} {TOKEN}")];
        for method in ["GET", "HEAD"] {
            send(&app, (method, "/v1/pets"), &key).assert_status(200);
            send(&app, (method, &pet), &key).assert_status(200);
        }
        send(&app, ("POST", "/v1/pets"), &key).assert_status(201).assert_header("WWW-Authenticate", None);
    }
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
