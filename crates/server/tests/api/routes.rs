//! Unknown paths, unsupported methods, and requests that must not cause a 5xx.

use animal_store_test_servers::Response;

use crate::test_app::TestApp;

const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"];

/// The methods except these.
fn methods_but(supported: &'static [&str]) -> impl Iterator<Item = &'static str> {
    METHODS.into_iter().filter(|method| !supported.contains(method))
}

#[track_caller]
fn assert_allows(response: &Response, allowed: &[&str]) {
    response.assert_error(405, "method_not_allowed");
    assert_eq!(response.items("Allow"), allowed);
}

#[test]
fn an_unknown_path_under_v1_is_a_404_with_the_error_body() {
    let app = TestApp::start();
    let id = app.create_pet(None);

    for path in [
        "/v1",
        "/v1/",
        "/v1?limit=1",
        "/v1/nowhere",
        "/v1/Pets",
        "/v1/pets/",
        "/v1//pets",
        "/v1/petsx",
        "/v1/pets%2F1",
        &format!("/v1/pets/{id}/"),
        &format!("/v1/pets/{id}/owner"),
        &format!("/v1/pets//{id}"),
        "/v1/live",
        "/v1/v1/pets",
        "/v1/../live",
        "/v1/%00",
        "/v1/%FF",
    ] {
        app.get(path).assert_error(404, "route_not_found");
        app.request("HEAD", path).send().assert_head_of(&app.get(path));
    }
    for method in methods_but(&["HEAD"]) {
        let response = app.request(method, "/v1/nowhere").send();
        response.assert_header("Allow", None).assert_error(404, "route_not_found");
    }
}

#[test]
fn an_unknown_path_outside_of_v1_is_a_404_without_a_key() {
    let app = TestApp::start();

    for path in [
        "/nowhere",
        "/docs/",
        "/docs/x/y",
        "/pets",
        "/v2/pets",
        "/V1/pets",
        "/v1pets",
        "/v10/pets",
        "//v1/pets",
        "/x/../v1",
    ] {
        let get = app.anonymous("GET", path).header("Authorization", "Bearer unknown").send();
        get.assert_error(404, "route_not_found");
        app.anonymous("HEAD", path).send().assert_head_of(&get);
    }
    for method in methods_but(&["HEAD"]) {
        let response = app.anonymous(method, "/nowhere").send();
        response.assert_header("WWW-Authenticate", None).assert_error(404, "route_not_found");
    }
}

#[test]
fn an_unsupported_method_of_the_list_is_a_405_that_names_the_supported_ones() {
    let app = TestApp::start();

    for path in ["/v1/pets", "/v1/pets?limit=1", "/v1/pets?limit=0"] {
        for method in methods_but(&["GET", "HEAD", "POST"]) {
            assert_allows(&app.request(method, path).send(), &["get", "head", "post"]);
        }
    }
}

#[test]
fn an_unsupported_method_of_a_pet_is_a_405_that_names_the_supported_ones() {
    let app = TestApp::start();
    let id = app.create_pet(None);

    for path in [format!("/v1/pets/{id}"), format!("/v1/pets/{}", id + 1), "/v1/pets/abc".to_owned()] {
        for method in methods_but(&["GET", "HEAD"]) {
            assert_allows(&app.request(method, &path).send(), &["get", "head"]);
        }
    }
    app.get(&format!("/v1/pets/{id}")).assert_status(200);
}

#[test]
fn a_percent_encoded_path_is_the_decoded_one() {
    let app = TestApp::start();
    let ids = app.create_pets(2);

    for path in ["/v1/p%65ts", "/%761/pets", "/v%31/%70%65%74%73"] {
        app.anonymous("GET", path).send().assert_error(401, "missing_api_key");
        assert_eq!(app.get(path).ids(), ids);
    }
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
