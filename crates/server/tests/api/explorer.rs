//! The API explorer at `/docs`: a browser gets all of it from this service and from no other host.
//! `scripts/check-browser` finds what its policy forbids, and a reference without a file.

use crate::prelude::*;

const FILES: [(&str, &str); 4] = [
    ("/docs/explorer.css", "text/css; charset=utf-8"),
    ("/docs/explorer.js", "text/javascript; charset=utf-8"),
    (
        "/docs/swagger-ui-bundle.js",
        "text/javascript; charset=utf-8",
    ),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
];

#[test]
fn the_page_needs_no_key_and_its_policy_allows_its_own_files_and_requests_to_its_origin_only() {
    let app = TestApp::start();
    let page = app.anonymous("GET", "/docs").send();
    page.assert_status(200)
        .assert_header("Content-Type", Some("text/html; charset=utf-8"));
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    page.assert_header("Content-Security-Policy", Some(policy));
    app.anonymous("HEAD", "/docs").send().assert_head_of(&page);
    for path in ["/docs?x=1", "/%64ocs"] {
        let with_wrong_key = app
            .anonymous("GET", path)
            .header("Authorization", "Bearer unknown")
            .send();
        assert_eq!(with_wrong_key.assert_status(200).text(), page.text());
    }
}

#[test]
fn the_page_refers_to_files_of_this_service_that_may_be_cached_for_an_hour() {
    let app = TestApp::start();
    for (path, content_type) in FILES {
        let file = app.anonymous("GET", path).send();
        file.assert_status(200)
            .assert_header("Content-Type", Some(content_type));
        file.assert_header("Cache-Control", Some("max-age=3600"));
        assert!(!file.body.is_empty(), "{path}");
        app.anonymous("HEAD", path).send().assert_head_of(&file);
    }
    // Relative to /docs, so that they are valid behind any base path.
    let page = app.anonymous("GET", "/docs").send();
    for (path, _) in FILES {
        assert!(page.text().contains(&path[1..]), "{path}");
    }
}

#[test]
fn an_unknown_file_is_a_404_and_all_can_only_be_read() {
    let app = TestApp::start();
    for path in [
        "/docs/Explorer.js",
        "/docs//explorer.js",
        "/docs/..%2fexplorer.js",
        "/docs/%00",
        "/docsx",
    ] {
        let response = app.anonymous("GET", path).send();
        response
            .assert_header("Cache-Control", None)
            .assert_error(404, "route_not_found");
    }
    for (method, path) in [
        ("POST", "/docs"),
        ("OPTIONS", "/docs/explorer.js"),
        ("get", "/docs/nothing.js"),
        ("TRACE", "/"),
    ] {
        let response = app.anonymous(method, path).send();
        response
            .assert_header("Allow", Some("GET, HEAD"))
            .assert_header("Content-Security-Policy", None);
        response.assert_error(405, "method_not_allowed");
    }
}

#[test]
fn the_root_and_the_page_with_a_slash_redirect_to_the_page_behind_any_base_path() {
    let app = TestApp::start();
    for (path, location) in [("/?x=1", "docs"), ("/docs/?x=1", "../docs")] {
        let redirect = app.anonymous("GET", path).send();
        redirect
            .assert_status(302)
            .assert_header("Location", Some(location));
        assert!(redirect.body.is_empty(), "{redirect:?}");
        app.anonymous("HEAD", path).send().assert_head_of(&redirect);
    }
}
