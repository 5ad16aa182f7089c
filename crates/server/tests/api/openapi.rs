//! The OpenAPI document.

use crate::test_app::TestApp;

const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

#[test]
fn the_document_needs_no_key_and_is_the_committed_one() {
    let app = TestApp::start();
    let response = app.anonymous("GET", "/openapi.json").send();
    assert!(response.assert_header("Content-Type", Some("application/json")).text() == DOCUMENT);
    app.anonymous("HEAD", "/openapi.json").send().assert_head_of(&response);
    let post = app.anonymous("POST", "/openapi.json").send();
    post.assert_header("Allow", Some("GET, HEAD")).assert_error(405, "method_not_allowed");
}
