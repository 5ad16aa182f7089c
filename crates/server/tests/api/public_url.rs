//! `http.public_url`: the references in responses are absolute.

use crate::prelude::*;

const URL: &str = "https://shop.example/animals/v1";

fn app() -> TestApp {
    TestApp::start_with(&[("http.public_url", "https://shop.example/animals/v1/")])
}

#[track_caller]
fn assert_link(response: &Response, link: &str) {
    response.assert_header("Link", Some(&format!("<{URL}/{link}")));
}

#[test]
fn every_link_and_location_is_absolute() {
    let app = app();
    for id in [1, 2] {
        let created = app.post(r#"{"name":"Rex","categoryId":1,"status":"sold"}"#);
        let location = format!("{URL}/pets/{id}");
        created.assert_header("Location", Some(&location));
    }
    // That of the API explorer stays at its origin.
    let root = app.anonymous("GET", "/").send();
    root.assert_header("Location", Some("docs"));
    let list = app.get("/v1/pets?limit=1&status=sold");
    let cursor = "limit=1&status=sold&cursor=AAAAAAAAAAE";
    assert_link(&list, &format!(r#"pets?{cursor}>; rel="next""#));
    app.get(&format!("/v1/pets?{cursor}"))
        .assert_header("Link", None);
    let found = app.get("/v1/pets/1");
    assert_link(&found, r#"pets>; rel="successor-version""#);
}

#[test]
fn the_served_document_has_the_url_as_its_server_and_no_other_change() {
    let document = |app: &TestApp| app.anonymous("GET", "/openapi.json").send().json();
    let mut served: Value = document(&app());
    assert_eq!(served["servers"].as_array().expect("a list").len(), 1);
    assert_eq!(served["servers"][0]["url"], URL);
    served["servers"][0]["url"] = "v1".into();
    assert_eq!(served, document(&TestApp::start()));
}
