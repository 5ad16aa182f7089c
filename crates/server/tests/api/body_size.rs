//! How large the body of `createPet` may be.

use serde_json::json;

use crate::test_app::TestApp;

/// A valid animal in exactly this many bytes.
fn animal_of(bytes: usize) -> String {
    let frame = r#"{"name":"Rex","categoryId":7,"padding":""}"#;
    frame.replace(r#""""#, &format!("\"{}\"", "x".repeat(bytes - frame.len())))
}

#[test]
fn a_body_of_16384_bytes_is_accepted() {
    let app = TestApp::start();
    let body = animal_of(16_384);
    assert_eq!(body.len(), 16_384);

    app.post(&body).assert_status(201);
    app.post(" ".repeat(16_384 - 29) + r#"{"name":"Rex","categoryId":7}"#).assert_status(201);
}

#[test]
fn a_body_of_16385_bytes_is_too_large() {
    let app = TestApp::start();

    app.post(animal_of(16_385)).assert_error(413, "payload_too_large");
    assert_eq!(app.get("/v1/pets").json(), json!([]));
}

#[test]
fn a_body_without_a_declared_length_has_the_same_bound() {
    let app = TestApp::start();
    let chunked =
        |body: String| app.request("POST", "/v1/pets").header("Content-Type", "application/json").chunked(body).send();

    chunked(animal_of(16_384)).assert_status(201);
    chunked(animal_of(16_385)).assert_error(413, "payload_too_large");
    assert_eq!(app.get("/v1/pets").ids().len(), 1);
}

#[test]
fn white_space_counts() {
    let app = TestApp::start();

    app.post(animal_of(16_384) + " ").assert_error(413, "payload_too_large");
}

#[test]
fn the_bound_is_configurable() {
    let app = TestApp::start_with(&[("http.max_body_bytes", "100")]);

    app.post(animal_of(100)).assert_status(201);
    app.post(animal_of(101)).assert_error(413, "payload_too_large");
}

#[test]
fn the_service_goes_on_after_a_body_that_was_too_large() {
    let app = TestApp::start();

    app.post(animal_of(100_000)).assert_error(413, "payload_too_large");

    app.post(animal_of(16_384)).assert_status(201);
}
