//! Paths that lead nowhere, methods that a path does not know, and what no request may cause.

use crate::{client::Response, test_app::TestApp};

const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"];

#[track_caller]
fn assert_allows(response: &Response, allowed: &[&str]) {
    response.assert_error(405, "method_not_allowed");
    let mut methods: Vec<_> = response.header("Allow").expect("an Allow header").split(", ").collect();
    methods.sort_unstable();
    assert_eq!(methods, allowed);
}

#[test]
fn a_path_under_v1_that_leads_nowhere_is_a_404_with_the_error_body() {
    let app = TestApp::start();
    let id = app.add(None);

    for path in [
        "/v1",
        "/v1/",
        "/v1?limit=1",
        "/v1/nowhere",
        "/v1/pet",
        "/v1/Pets",
        "/v1/pets/",
        "/v1//pets",
        "/v1/petsx",
        "/v1/pets%2F1",
        &format!("/v1/pets/{id}/"),
        &format!("/v1/pets/{id}/owner"),
        &format!("/v1/pets//{id}"),
        "/v1/store/orders",
        "/v1/live",
        "/v1/ready",
        "/v1/v1/pets",
        "/v1/../live",
        "/v1/%00",
        "/v1/%FF",
    ] {
        for method in METHODS.into_iter().filter(|&method| method != "HEAD") {
            app.request(method, path).send().assert_error(404, "route_not_found");
        }
        app.request("HEAD", path).send().assert_head_of(&app.get(path));
    }
}

#[test]
fn a_path_outside_of_v1_is_a_404_that_asks_for_no_key() {
    let app = TestApp::start();

    for path in [
        "/nowhere",
        "/docs/",
        "/docs/x/y",
        "/pets",
        "/pets/1",
        "/v2/pets",
        "/V1/pets",
        "/v1pets",
        "/v10/pets",
        "//v1/pets",
        "/x/../v1",
    ] {
        for method in METHODS.into_iter().filter(|&method| method != "HEAD") {
            let response = app.anonymous(method, path).send();
            response.assert_header("WWW-Authenticate", None).assert_error(404, "route_not_found");
        }
        let get = app.anonymous("GET", path).header("Authorization", "Bearer unknown").send();
        get.assert_error(404, "route_not_found");
        app.anonymous("HEAD", path).send().assert_head_of(&get);
    }
}

#[test]
fn a_method_that_the_list_does_not_know_is_a_405_that_says_what_it_knows() {
    let app = TestApp::start();

    for path in ["/v1/pets", "/v1/pets?limit=1", "/v1/pets?limit=0"] {
        for method in METHODS.into_iter().filter(|method| !["GET", "HEAD", "POST"].contains(method)) {
            assert_allows(&app.request(method, path).send(), &["GET", "HEAD", "POST"]);
        }
    }
}

#[test]
fn a_method_that_an_animal_does_not_know_is_a_405_that_says_what_it_knows() {
    let app = TestApp::start();
    let id = app.add(None);

    for path in [format!("/v1/pets/{id}"), format!("/v1/pets/{}", id + 1), "/v1/pets/abc".to_owned()] {
        for method in METHODS.into_iter().filter(|method| !["GET", "HEAD"].contains(method)) {
            assert_allows(&app.request(method, &path).send(), &["GET", "HEAD"]);
        }
    }
    app.get(&format!("/v1/pets/{id}")).assert_status(200);
}

#[test]
fn a_percent_encoded_path_is_the_path_that_it_stands_for() {
    let app = TestApp::start();
    let ids = app.add_many(2);

    for path in ["/v1/p%65ts", "/%761/pets", "/v%31/%70%65%74%73"] {
        app.anonymous("GET", path).send().assert_error(401, "missing_api_key");
        assert_eq!(app.get(path).ids(), ids);
    }
}

#[test]
fn no_request_is_answered_with_a_5xx() {
    let app = TestApp::start();
    let id = app.add(None);
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
            for authorization in ["", "Bearer test-token-1", "Bearer x", "Basic x"] {
                let request = app.anonymous(method, path).header("Authorization", authorization);
                let response = request.header("Accept", "*/*;q=x").header("Range", "bytes=9-1").send();
                assert!((200..500).contains(&response.status), "{response:?}");
            }
        }
    }
}
