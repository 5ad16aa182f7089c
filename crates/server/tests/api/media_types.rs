//! What the body of `createPet` may call itself, and what it is answered with.

use crate::{client::Response, test_app::TestApp};

const BODY: &str = r#"{"name":"Rex","categoryId":7}"#;

fn post_as(app: &TestApp, content_types: &[&str]) -> Response {
    let request = app.request("POST", "/v1/pets");
    content_types.iter().fold(request, |request, value| request.header("Content-Type", value)).body(BODY).send()
}

fn post_encoded(app: &TestApp, encoding: &str) -> Response {
    app.request("POST", "/v1/pets").header("Content-Encoding", encoding).json(BODY).send()
}

#[test]
fn json_and_its_relatives_are_accepted() {
    let app = TestApp::start();

    for content_type in [
        "application/json",
        "Application/JSON",
        "application/json;charset=utf-8",
        "application/json; charset=UTF-8",
        "application/json; charset=\"utf-8\"",
        "application/vnd.animals+json",
        "application/merge-patch+json",
        "application/vnd.animals+xml+json",
        "application/ld+json; charset=utf-8",
    ] {
        post_as(&app, &[content_type]).assert_status(201);
    }
}

#[test]
fn any_other_type_is_a_415() {
    let app = TestApp::start();

    for content_type in [
        "",
        "json",
        "text/json",
        "text/plain",
        "text/plain+json",
        "application/jsonp",
        "application/xml",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=iso-8859-1",
        "application/json; charset=utf-16",
        "application/json, text/plain",
        "*/*",
    ] {
        post_as(&app, &[content_type])
            .assert_header("Accept-Encoding", None)
            .assert_error(415, "unsupported_media_type");
    }
    assert_eq!(app.get("/v1/pets").text(), "[]");
}

#[test]
fn a_type_whose_last_suffix_is_another_is_a_415() {
    let app = TestApp::start();

    for content_type in
        ["application/vnd.animals+json+xml", "application/json+xml", "application/json+xml; charset=utf-8"]
    {
        post_as(&app, &[content_type]).assert_error(415, "unsupported_media_type");
    }
}

#[test]
fn a_body_without_a_type_or_with_two_is_a_415() {
    let app = TestApp::start();

    post_as(&app, &[]).assert_error(415, "unsupported_media_type");
    post_as(&app, &["application/json", "text/plain"]).assert_error(415, "unsupported_media_type");
}

#[test]
fn no_body_at_all_is_a_400_whatever_the_type() {
    let app = TestApp::start();

    let post = || app.request("POST", "/v1/pets");
    post().header("Content-Length", "0").send().assert_error(400, "invalid_body");
    post().chunked("").send().assert_error(400, "invalid_body");
    for content_type in ["application/json", "text/plain", "nonsense", ""] {
        let typed = || post().header("Content-Type", content_type);
        typed().header("Content-Length", "0").send().assert_error(400, "invalid_body");
        typed().chunked("").send().assert_error(400, "invalid_body");
    }
}

#[test]
fn an_encoded_body_is_a_415_that_says_what_is_accepted() {
    let app = TestApp::start();

    for encoding in ["gzip", "br", "deflate", "zstd", "GZIP", "identity, gzip", "gzip, identity", "unheard-of"] {
        post_encoded(&app, encoding)
            .assert_header("Accept-Encoding", Some("identity"))
            .assert_error(415, "unsupported_media_type");
    }
    assert_eq!(app.get("/v1/pets").text(), "[]");
}

#[test]
fn the_identity_encoding_is_none() {
    let app = TestApp::start();

    post_encoded(&app, "identity").assert_status(201);
    post_encoded(&app, "Identity").assert_status(201);
}

#[test]
fn the_answer_is_json_whatever_is_accepted() {
    let app = TestApp::start();
    let id = app.add(None);

    for accept in ["application/xml", "text/html", "*/*;q=0", "application/json;q=0", "nonsense"] {
        for (path, status) in [("/v1/pets", 200), (&format!("/v1/pets/{id}"), 200), ("/v1/nowhere", 404)] {
            let response = app.request("GET", path).header("Accept", accept).send();
            response.assert_status(status).json();
        }
        let response = app.request("POST", "/v1/pets").header("Accept", accept).json(BODY).send();
        response.assert_status(201).json();
    }
}
