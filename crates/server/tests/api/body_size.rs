//! The largest body of `createPet`.

use crate::test_app::TestApp;

/// A valid pet in exactly this many bytes.
fn pet_of(bytes: usize) -> String {
    let frame = r#"{"name":"Rex","categoryId":7,"padding":""}"#;
    frame.replace(r#""""#, &format!("\"{}\"", "x".repeat(bytes - frame.len())))
}

#[test]
fn a_body_of_16384_bytes_is_accepted_and_one_of_16385_is_not() {
    let app = TestApp::start();
    assert_eq!(pet_of(16_384).len(), 16_384);

    app.post(pet_of(16_385)).assert_error(413, "payload_too_large");
    assert_eq!(app.get("/v1/pets").text(), "[]");
    app.post(pet_of(16_384)).assert_status(201);
}

#[test]
fn a_body_without_a_declared_length_has_the_same_bound() {
    let app = TestApp::start();
    let chunked =
        |body| app.request("POST", "/v1/pets").header("Content-Type", "application/json").chunked(body).send();

    chunked(pet_of(16_384)).assert_status(201);
    chunked(pet_of(16_385)).assert_error(413, "payload_too_large");
    assert_eq!(app.get("/v1/pets").ids().len(), 1);
}

#[test]
fn the_bound_is_configurable() {
    let app = TestApp::start_with(&[("http.max_body_bytes", "100")]);

    app.post(pet_of(100)).assert_status(201);
    app.post(pet_of(101)).assert_error(413, "payload_too_large");
}
