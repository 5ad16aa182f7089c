//! The media type and the content coding of bodies. The unit tests of the body cover every form.

use crate::test_app::{PET, TestApp};

#[test]
fn any_other_type_is_a_415() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets");

    for request in [
        post(),
        post().header("Content-Type", "text/plain"),
        post().header("Content-Type", "application/json; charset=utf-16"),
        post().header("Content-Type", "application/json").header("Content-Type", "text/plain"),
    ] {
        let response = request.body(PET).send();
        response.assert_header("Accept-Encoding", None).assert_error(415, "unsupported_media_type");
    }
    assert_eq!(app.get("/v1/pets").text(), "[]");
    post().header("Content-Type", "application/vnd.pets+json; charset=utf-8").body(PET).send().assert_status(201);
}

#[test]
fn a_missing_body_is_a_400_with_any_type_and_any_encoding() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets");

    for content_type in ["application/json", "text/plain", ""] {
        let typed = || post().header("Content-Type", content_type);
        typed().header("Content-Length", "0").send().assert_error(400, "invalid_body");
        typed().chunked("").send().assert_error(400, "invalid_body");
        typed().header("Content-Encoding", "gzip").send().assert_error(400, "invalid_body");
    }
}

#[test]
fn an_encoded_body_is_a_415_that_names_the_accepted_coding() {
    let app = TestApp::start();
    let post_encoded = |coding| app.request("POST", "/v1/pets").header("Content-Encoding", coding).json(PET).send();

    let response = post_encoded("gzip");
    response.assert_header("Accept-Encoding", Some("identity")).assert_error(415, "unsupported_media_type");
    assert_eq!(app.get("/v1/pets").text(), "[]");
    post_encoded("identity").assert_status(201);
}

#[test]
fn every_response_is_json_regardless_of_accept() {
    let app = TestApp::start();
    let pet = format!("/v1/pets/{}", app.create_pet(None));

    for accept in ["application/xml", "*/*;q=0", "application/json;q=0", "nonsense"] {
        for (request, status) in [
            (app.request("GET", "/v1/pets"), 200),
            (app.request("GET", &pet), 200),
            (app.request("GET", "/v1/nowhere"), 404),
            (app.request("POST", "/v1/pets").json(PET), 201),
        ] {
            let response = request.header("Accept", accept).send();
            response.assert_status(status).assert_header("Content-Type", Some("application/json"));
        }
    }
}
