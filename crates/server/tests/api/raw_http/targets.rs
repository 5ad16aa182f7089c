//! Request targets in every form.

use crate::prelude::*;

#[test]
fn an_absolute_target_is_served_by_its_path() {
    let app = TestApp::start();
    let created = app
        .send(post("Rex").replacen("/v1/pets", "http://other.example/v1/pets", 1))
        .response();
    let listed = app
        .send(get("http://other.example:81/v1/pets?limit=1"))
        .response();
    assert_eq!(listed.json(), json!([created.assert_status(201).json()]));
}

#[test]
fn no_form_of_a_target_bypasses_the_api_key() {
    let app = TestApp::start();
    let body = pet("Rex");
    let of_v1 = "/v1/pets HTTP://STORE.EXAMPLE/v1/pets http://user:password@store.example/v1/pets /v1/../v1/pets \
        /v1//pets /v1/pets/ /v1/%70ets /%761/pets /v1/pets%00 /v1/pets%20 /v1/pets;x=1";
    let others = "//v1/pets /./v1/pets /v1%2Fpets /%2e%2e/v1/pets /V1/pets /v1%5Cpets ://v1/pets";
    let invalid = "v1/pets ?/v1/pets /v1\\pets store.example:80";
    for (targets, status) in [(of_v1, 401), (others, 404), (invalid, 400)] {
        for target in targets.split_whitespace() {
            for method in ["GET", "POST", "HEAD", "OPTIONS"] {
                let head = format!(
                    "{method} {target} HTTP/1.1\r\nHost: store.example\r\nConnection: close\r\n"
                );
                let framing = format!(
                    "Content-Type: application/json\r\nContent-Length: {}",
                    body.len()
                );
                let mut connection = app.send(format!("{head}{framing}\r\n\r\n{body}"));
                response_to(method, &mut connection).assert_status(status);
            }
        }
    }
    assert_no_pet(&app);
}

#[test]
fn an_invalid_target_is_refused() {
    let app = TestApp::start();
    let targets = "http:// http:///v1/pets /v1/pets#fragment\u{1} /v1/pets\u{ff} /v1/pets# /v1/pets#a # \
        /v1/pets?limit=1#a http://store.example/v1/pets#a http://store.example#a /v1\\pets \\v1\\pets /\\?a \
        http://store.example/v1\\pets http://store.example\\v1/pets * *?a */ a a:80 store.example \
        user@store.example:80 [::1]:80";
    for target in targets.split(' ') {
        for method in ["GET", "HEAD", "POST", "PUT", "X-UNKNOWN"] {
            let _ = assert_refused(&app, get(target).replacen("GET", method, 1), 400);
        }
    }
}

#[test]
fn options_of_the_server_are_what_its_paths_allow() {
    let app = TestApp::start();
    for request in [app.anonymous("OPTIONS", "*"), app.request("OPTIONS", "*")] {
        let response = request.send();
        response
            .assert_status(204)
            .assert_header("Allow", Some("GET, HEAD, POST, OPTIONS"))
            .assert_header("Content-Length", None)
            .assert_header("Connection", None);
        assert!(response.header("X-Request-Id").is_some());
    }
    app.management("OPTIONS", "*")
        .send()
        .assert_status(204)
        .assert_header("Allow", Some("GET, HEAD, OPTIONS"));
}

#[test]
fn connect_and_long_methods_are_not_implemented() {
    let app = TestApp::start();
    let long = "M".repeat(33);
    for line in [
        "CONNECT store.example:80",
        "CONNECT store.example",
        "CONNECT /v1/pets",
        "CONNECT *",
        "CONNECT http://store.example/v1/pets",
        &format!("{long} /v1/pets"),
        &format!("{} /v1/pets", "GET".repeat(100)),
        &format!("{long} *"),
    ] {
        let _ = assert_refused(&app, get("").replacen("GET ", line, 1), 501);
    }
    app.send(get("/v1/pets").replacen("GET", &long[1..], 1))
        .response()
        .assert_error(405, "method_not_allowed");
}

#[test]
fn a_query_may_contain_what_browsers_send_raw() {
    let app = TestApp::start();
    app.send(get("/v1/pets?x=\\|^`{}[]'"))
        .response()
        .assert_status(200);
}
