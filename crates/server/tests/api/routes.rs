//! The OpenAPI document, unknown paths, unsupported methods, and requests that must not cause a 5xx.

use crate::prelude::*;

const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

#[test]
fn an_unknown_path_is_a_404_with_the_error_body_and_outside_of_v1_without_a_key() {
    let app = TestApp::start();
    let pet = app.create_pet();

    let under_v1 = format!(
        "/v1 /v1/ /v1?limit=1 /v1/nowhere /v1/Pets /v1/pets/ /v1//pets /v1/petsx /v1/pets%2F1 {pet}/ {pet}/owner \
         /v1/live /v1/../live /v1/%00 /v1/%FF"
    );
    let outside = "/nowhere /docs/x/y /pets /v2/pets /V1/pets /v1pets //v1/pets /x/../v1";
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "get"] {
        let requests = under_v1.split(' ').map(|path| app.request(method, path));
        for request in requests.chain(outside.split(' ').map(|path| app.anonymous(method, path))) {
            let response = request.send();
            response
                .assert_header("Allow", None)
                .assert_header("WWW-Authenticate", None);
            response.assert_error(404, "route_not_found");
        }
    }
    app.request("HEAD", "/v1/nowhere")
        .send()
        .assert_head_of(&app.get("/v1/nowhere"));
}

#[test]
fn an_unsupported_method_is_a_405_that_names_the_supported_ones() {
    let app = TestApp::start();
    let pet = app.create_pet();

    for method in [
        "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get",
    ] {
        for (path, allowed) in [
            ("/v1/pets?limit=0", &["get", "head", "post"][..]),
            (&pet, &["get", "head"]),
        ] {
            let response = app.request(method, path).send();
            response.assert_error(405, "method_not_allowed");
            assert_eq!(response.items("Allow"), allowed);
        }
    }
    app.get(&pet).assert_status(200);
}

#[test]
fn a_percent_encoded_path_is_the_decoded_one() {
    let app = TestApp::start();
    for _ in 0..12 {
        app.create_pet();
    }
    for path in ["/v1/p%65ts", "/%761/pets", "/v%31/%70%65%74%73"] {
        app.anonymous("GET", path)
            .send()
            .assert_error(401, "missing_api_key");
        assert_eq!(app.get(path).ids().len(), 12);
    }
    let found = app.get("/v1/pets/%31%32");
    assert_eq!(found.assert_status(200).json()["id"], 12);
}

#[test]
fn an_id_that_no_pet_can_have_is_a_404_and_the_query_does_not_matter() {
    let app = TestApp::start();
    let pet = app.create_pet();

    // The unit tests of `pets/digits` have the table. These are texts that actix could decode.
    let id = pet.rsplit('/').next().expect("an id");
    let texts = format!("0{id} %2B{id} {id}%00 {id}%2F %20 %2F1 %FF % %zz * ..");
    for text in texts.split(' ').chain([&*"9".repeat(4000)]) {
        app.get(&format!("/v1/pets/{text}"))
            .assert_error(404, "pet_not_found");
    }
    for query in ["?", "?limit=0", "?status=available", "?id=1&x=y"] {
        app.get(&format!("{pet}{query}")).assert_status(200);
    }
}

#[test]
fn the_document_needs_no_key_and_is_the_committed_one() {
    let app = TestApp::start();
    let response = app.anonymous("GET", "/openapi.json").send();
    response.assert_header("Content-Type", Some("application/json"));
    assert!(response.text() == DOCUMENT);
    let head = app.anonymous("HEAD", "/openapi.json").send();
    head.assert_head_of(&response);
    let post = app.anonymous("POST", "/openapi.json").send();
    post.assert_header("Allow", Some("GET, HEAD"))
        .assert_error(405, "method_not_allowed");
}
