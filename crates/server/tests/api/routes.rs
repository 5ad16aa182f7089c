//! Unknown paths, unsupported methods, and requests that must not cause a 5xx.

use animal_store_test_servers::Response;

use crate::test_app::TestApp;

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "get"];

#[track_caller]
fn assert_allows(response: &Response, allowed: &[&str]) {
    response.assert_error(405, "method_not_allowed");
    assert_eq!(response.items("Allow"), allowed);
}

#[test]
fn an_unknown_path_is_a_404_with_the_error_body_and_outside_of_v1_without_a_key() {
    let app = TestApp::start();
    let id = app.create_pet(None);

    let paths = format!(
        "/v1 /v1/ /v1?limit=1 /v1/nowhere /v1/Pets /v1/pets/ /v1//pets /v1/petsx /v1/pets%2F1 /v1/pets/{id}/ \
         /v1/pets/{id}/owner /v1/pets//{id} /v1/live /v1/../live /v1/%00 /v1/%FF"
    );
    for path in paths.split(' ') {
        app.get(path).assert_error(404, "route_not_found");
        app.request("HEAD", path).send().assert_head_of(&app.get(path));
    }
    for path in "/nowhere /docs/x/y /pets /v2/pets /V1/pets /v1pets //v1/pets /x/../v1".split(' ') {
        let get = app.anonymous("GET", path).header("Authorization", "Bearer unknown").send();
        get.assert_error(404, "route_not_found");
        app.anonymous("HEAD", path).send().assert_head_of(&get);
    }
    for method in METHODS {
        for response in [app.request(method, "/v1/nowhere").send(), app.anonymous(method, "/nowhere").send()] {
            response.assert_header("Allow", None).assert_header("WWW-Authenticate", None);
            response.assert_error(404, "route_not_found");
        }
    }
}

#[test]
fn an_unsupported_method_is_a_405_that_names_the_supported_ones() {
    let app = TestApp::start();
    let pet = format!("/v1/pets/{}", app.create_pet(None));

    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"] {
        for path in ["/v1/pets", "/v1/pets?limit=0"] {
            assert_allows(&app.request(method, path).send(), &["get", "head", "post"]);
        }
        for path in [&*pet, "/v1/pets/abc"] {
            assert_allows(&app.request(method, path).send(), &["get", "head"]);
        }
    }
    assert_allows(&app.request("POST", &pet).send(), &["get", "head"]);
    app.get(&pet).assert_status(200);
}

#[test]
fn a_percent_encoded_path_is_the_decoded_one() {
    let app = TestApp::start();
    let ids = app.create_pets(2);

    for path in ["/v1/p%65ts", "/%761/pets", "/v%31/%70%65%74%73"] {
        app.anonymous("GET", path).send().assert_error(401, "missing_api_key");
        assert_eq!(app.get(path).ids(), ids);
    }
    let digits: String = ids[0].to_string().chars().flat_map(|digit| ['%', '3', digit]).collect();
    assert_eq!(app.get(&format!("/v1/pets/{digits}")).assert_status(200).json()["id"], ids[0]);
}

#[test]
fn no_request_causes_a_5xx() {
    let app = TestApp::start();
    let id = app.create_pet(None);
    let paths = [
        "/",
        "/v1",
        "/v1/pets",
        "/v1/pets?limit=0&status=x&cursor=x",
        "/v1/pets?%FF=%00&limit=%FF",
        "/v1/pets?cursor=f_________8&status=sold",
        &format!("/v1/pets/{id}"),
        "/v1/pets/9223372036854775807",
        "/v1/pets/%FF%00",
        &format!("/v1/pets/{}", "9".repeat(4000)),
        &format!("/v1/pets?limit={}", "9".repeat(4000)),
    ];

    for path in paths {
        for method in METHODS {
            let request = app.request(method, path).header("Accept", "*/*;q=x").header("Range", "bytes=9-1");
            let response = request.send();
            assert!((200..500).contains(&response.status), "{response:?}");
        }
    }
}
