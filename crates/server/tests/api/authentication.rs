//! The API key of every request under `/v1`.

use crate::{
    client::Response,
    test_app::{OTHER_TOKEN, TOKEN, TestApp},
};

const NO_KEY: &str = r#"Bearer realm="animal-store""#;
const MALFORMED_KEY: &str = r#"Bearer realm="animal-store", error="invalid_request""#;
const UNKNOWN_KEY: &str = r#"Bearer realm="animal-store", error="invalid_token""#;

const OPERATIONS: [(&str, &str); 5] =
    [("GET", "/v1/pets"), ("HEAD", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/pets/1"), ("HEAD", "/v1/pets/1")];

/// Sends these `Authorization` headers.
fn ask(app: &TestApp, (method, path): (&str, &str), authorization: &[&str]) -> Response {
    let request = app.anonymous(method, path);
    let request = authorization.iter().fold(request, |request, value| request.header("Authorization", value));
    if method == "POST" { request.json(r#"{"name":"Rex","categoryId":7}"#).send() } else { request.send() }
}

#[track_caller]
fn assert_refused(app: &TestApp, authorization: &[&str], code: &str, challenge: &str) {
    for operation in OPERATIONS {
        let response = ask(app, operation, authorization);
        response.assert_status(401).assert_header("WWW-Authenticate", Some(challenge));
        if operation.0 == "HEAD" {
            assert!(response.body.is_empty());
        } else {
            response.assert_error(401, code);
        }
    }
}

#[test]
fn without_a_key_every_operation_is_a_401() {
    let app = TestApp::start();

    assert_refused(&app, &[], "missing_api_key", NO_KEY);
}

#[test]
fn another_scheme_is_no_key() {
    let app = TestApp::start();

    for authorization in ["", "Basic dGVzdDp0ZXN0", "Digest username=\"x\"", "Token test-token-1", "test-token-1"] {
        assert_refused(&app, &[authorization], "missing_api_key", NO_KEY);
    }
    for glued in ["Bearertest-token-1", "Bearer:test-token-1", "Bearer=test-token-1", "XBearer test-token-1"] {
        assert_refused(&app, &[glued], "missing_api_key", NO_KEY);
    }
}

#[test]
fn a_malformed_token_is_an_invalid_key() {
    let app = TestApp::start();

    for token in [
        "",
        "=",
        "==",
        "a b",
        "a=b",
        "=a",
        "a,b",
        "a;b",
        "a:b",
        "\"test-token-1\"",
        "<test-token-1>",
        "test-token-1, Bearer test-token-1",
        "test-token-1 test-token-1",
        "token=test-token-1",
        "a%20b",
        "a\tb",
        "*",
    ] {
        assert_refused(&app, &[&format!("Bearer {token}")], "invalid_api_key", MALFORMED_KEY);
    }
    assert_refused(&app, &["Bearer"], "invalid_api_key", MALFORMED_KEY);
}

#[test]
fn two_authorization_headers_are_an_invalid_key_even_where_both_agree() {
    let app = TestApp::start();
    let valid = &*format!("Bearer {TOKEN}");

    for pair in [[valid, valid], [valid, "Basic dGVzdDp0ZXN0"], ["Basic dGVzdDp0ZXN0", valid], ["Bearer x", valid]] {
        assert_refused(&app, &pair, "invalid_api_key", MALFORMED_KEY);
    }
}

#[test]
fn an_unknown_key_is_an_invalid_key() {
    let app = TestApp::start();

    for token in
        ["x", "test-token", "test-token-", "test-token-11", "Test-Token-1", "TEST-TOKEN-1", "test-token-1=", "-._~+/=="]
    {
        assert_refused(&app, &[&format!("Bearer {token}")], "invalid_api_key", UNKNOWN_KEY);
    }
}

#[test]
fn a_token_has_at_most_512_bytes() {
    let app = TestApp::start();

    assert_refused(&app, &[&format!("Bearer {}", "x".repeat(512))], "invalid_api_key", UNKNOWN_KEY);
    assert_refused(&app, &[&format!("Bearer {}==", "x".repeat(510))], "invalid_api_key", UNKNOWN_KEY);
    assert_refused(&app, &[&format!("Bearer {}", "x".repeat(513))], "invalid_api_key", MALFORMED_KEY);
    assert_refused(&app, &[&format!("Bearer {}==", "x".repeat(511))], "invalid_api_key", MALFORMED_KEY);
}

#[test]
fn a_valid_key_opens_every_operation_in_whatever_case_the_scheme_is_written() {
    let app = TestApp::start();
    let id = app.add(None);

    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer  "] {
        let key = [&*format!("{scheme} {TOKEN}")];
        for method in ["GET", "HEAD"] {
            ask(&app, (method, "/v1/pets"), &key).assert_status(200);
            ask(&app, (method, &format!("/v1/pets/{id}")), &key).assert_status(200);
        }
        ask(&app, ("POST", "/v1/pets"), &key).assert_status(201).assert_header("WWW-Authenticate", None);
    }
}

#[test]
fn another_key_sees_the_same_animals() {
    let app = TestApp::start();
    let mine = app.create(r#"{"name":"Rex","categoryId":7,"status":"sold"}"#);
    let other = [&*format!("Bearer {OTHER_TOKEN}")];

    let theirs = ask(&app, ("POST", "/v1/pets"), &other).assert_status(201).json();

    let by_id = ask(&app, ("GET", &format!("/v1/pets/{}", mine["id"])), &other);
    assert_eq!(by_id.assert_status(200).json(), mine);
    assert_eq!(ask(&app, ("GET", "/v1/pets"), &other).json(), serde_json::json!([mine, theirs]));
    assert_eq!(app.get("/v1/pets").json(), serde_json::json!([mine, theirs]));
}

#[test]
fn a_key_anywhere_else_is_no_key() {
    let app = TestApp::start();

    for request in [
        app.anonymous("GET", &format!("/v1/pets?access_token={TOKEN}")),
        app.anonymous("GET", "/v1/pets").header("X-Api-Key", TOKEN),
        app.anonymous("GET", "/v1/pets").header("Cookie", &format!("access_token={TOKEN}")),
        app.anonymous("GET", "/v1/pets").header("Proxy-Authorization", &format!("Bearer {TOKEN}")),
    ] {
        let response = request.send();
        response.assert_header("WWW-Authenticate", Some(NO_KEY)).assert_error(401, "missing_api_key");
    }
}

#[test]
fn no_answer_repeats_a_key() {
    let app = TestApp::start();

    for token in ["secret-unknown", "secret malformed", &"secret".repeat(100)] {
        let response = ask(&app, ("GET", "/v1/pets"), &[&format!("Bearer {token}")]);
        assert!(!response.text().contains("secret"), "{}", response.text());
    }
}

#[test]
fn nothing_is_added_without_a_key() {
    let app = TestApp::start();

    ask(&app, ("POST", "/v1/pets"), &[]).assert_error(401, "missing_api_key");

    assert_eq!(app.get("/v1/pets").text(), "[]");
}
