//! Request targets in every form.

use animal_store_test_servers::Response;
use serde_json::json;

use crate::{
    raw_requests::{assert_no_pet, get, pet, post},
    test_app::TestApp,
};

#[track_caller]
fn response_to(app: &TestApp, request: &str) -> Response {
    app.send(request).response()
}

#[test]
fn an_absolute_target_is_served_by_its_path() {
    let app = TestApp::start();

    let created = response_to(&app, &post("Rex").replacen("/v1/pets", "http://other.example/v1/pets", 1));
    let listed = response_to(&app, &get("http://other.example:81/v1/pets?limit=1"));

    assert_eq!((created.status, listed.status), (201, 200));
    assert_eq!(listed.json(), json!([created.json()]));
}

#[test]
fn no_form_of_a_target_bypasses_the_api_key() {
    let app = TestApp::start();
    let body = pet("Rex");
    let targets = "/v1/pets HTTP://STORE.EXAMPLE/v1/pets http://user:password@store.example/v1/pets //v1/pets \
        /./v1/pets /v1/../v1/pets /v1//pets /v1/pets/ /v1%2Fpets /v1/%70ets /%761/pets /%2e%2e/v1/pets /v1/pets%00 \
        /v1/pets%20 /v1/pets;x=1 /v1\\pets /V1/pets ?/v1/pets * store.example:80 v1/pets";
    for target in targets.split(' ') {
        for method in ["GET", "POST", "HEAD", "OPTIONS", "CONNECT"] {
            let head = format!("{method} {target} HTTP/1.1\r\nHost: store.example\r\nContent-Type: application/json");
            let framing = format!("Connection: close\r\nContent-Length: {}", body.len());
            let mut connection = app.send(format!("{head}\r\n{framing}\r\n\r\n{body}"));
            connection.finish_sending();
            let response = if method == "HEAD" { connection.response_to_head() } else { connection.response() };
            assert!(matches!(response.status, 400 | 401 | 404), "{method} {target}: {response:?}");
        }
    }
    assert_no_pet(&app);
}

#[test]
fn an_invalid_target_is_refused() {
    let app = TestApp::start();
    for target in ["http://", "http:///v1/pets", "/v1/pets#fragment\u{1}", "://v1/pets", "/v1/pets\u{ff}"] {
        let response = response_to(&app, &get(target));
        assert!((400..500).contains(&response.status), "{target}: {response:?}");
    }
    assert_no_pet(&app);
}
