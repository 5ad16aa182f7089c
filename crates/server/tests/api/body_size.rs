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
    let chunked =
        |body: &str| app.request("POST", "/v1/pets").header("Content-Type", "application/json").chunked(body).send();

    for body in [pet_of(16_384), pet_of(16_385)] {
        for response in [app.post(&body), chunked(&body)] {
            if body.len() == 16_384 {
                response.assert_status(201);
            } else {
                response.assert_error(413, "payload_too_large");
            }
        }
    }
    assert_eq!(app.get("/v1/pets").ids().len(), 2);
}

#[test]
fn the_bound_is_configurable() {
    let app = TestApp::start_with(&[("http.max_body_bytes", "100")]);

    app.post(pet_of(100)).assert_status(201);
    app.post(pet_of(101)).assert_error(413, "payload_too_large");
}
