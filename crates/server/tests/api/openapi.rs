//! The OpenAPI document, and the routes that it describes.

use std::collections::BTreeSet;

use serde_json::Value;

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

#[test]
fn each_path_has_the_methods_of_the_document_and_no_others() {
    let app = TestApp::start();
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.len(), 2);
    for (path, operations) in paths {
        let documented = operations.as_object().expect("operations").keys().map(String::as_str);
        // The description has the rule for HEAD.
        let expected: BTreeSet<_> = documented.chain(["head"]).collect();
        let response = app.request("PUT", &format!("/v1{}", path.replace("{petId}", "1"))).send();
        response.assert_error(405, "method_not_allowed");
        assert_eq!(response.items("Allow").iter().map(String::as_str).collect::<BTreeSet<_>>(), expected, "{path}");
    }
}
