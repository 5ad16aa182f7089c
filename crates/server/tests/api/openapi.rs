//! The OpenAPI document.

use crate::test_app::TestApp;

#[test]
fn the_document_needs_no_key_and_is_the_committed_one() {
    let app = TestApp::start();
    let response = app.anonymous("GET", "/openapi.json").send();
    response.assert_status(200).assert_header("Content-Type", Some("application/json"));
    assert!(
        response.text() == include_str!("../../../../docs/openapi.json"),
        "docs/openapi.json is stale: cargo run -- openapi > docs/openapi.json"
    );
    app.anonymous("HEAD", "/openapi.json").send().assert_head_of(&response);
}

#[test]
fn the_document_can_only_be_read() {
    let app = TestApp::start();
    let response = app.anonymous("POST", "/openapi.json").send();
    response.assert_header("Allow", Some("GET, HEAD")).assert_error(405, "method_not_allowed");
}
