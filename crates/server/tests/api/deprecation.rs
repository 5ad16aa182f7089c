//! The deprecation of `getPet`, which every authenticated response of this operation announces, and no other response.

use crate::prelude::*;

#[track_caller]
fn assert_deprecated(response: &Response, status: u16) {
    response
        .assert_status(status)
        .assert_header("Deprecation", Some("@1767225600"))
        .assert_header("Sunset", Some("Thu, 05 Dec 2030 00:00:00 GMT"))
        .assert_header("Link", Some(r#"<../pets>; rel="successor-version""#));
}

#[test]
fn every_authenticated_response_of_the_operation_announces_it_and_no_other() {
    let app = TestApp::start();
    let pet = app.create_pet();
    for method in ["GET", "HEAD"] {
        for (path, status) in [
            (&*pet, 200),
            ("/v1/pets/9223372036854775807", 404),
            ("/v1/pets/abc", 404),
        ] {
            assert_deprecated(&app.request(method, path).send(), status);
        }
    }
    for (request, status) in [
        (app.anonymous("GET", &pet), 401),
        (app.request("PROPFIND", &pet), 405),
        (app.request("GET", &format!("{pet}/owner")), 404),
        (app.request("GET", "/v1/pets"), 200),
        (app.request("POST", "/v1/pets").json("{}"), 400),
    ] {
        let response = request.send();
        response.assert_status(status);
        for name in ["Deprecation", "Sunset", "Link"] {
            response.assert_header(name, None);
        }
    }
}

#[test]
fn after_its_removal_the_operation_is_a_410_that_still_leads_to_its_successor() {
    let app = TestApp::start_with(&[("http.deprecated_get", "gone")]);
    for path in [&*app.create_pet(), "/v1/pets/0", "/v1/pets/abc"] {
        let response = app.get(path);
        assert_deprecated(&response, 410);
        response.assert_error(410, "gone");
        app.request("HEAD", path).send().assert_head_of(&response);
    }
    app.request("PROPFIND", "/v1/pets/1")
        .send()
        .assert_error(405, "method_not_allowed");
    app.get("/v1/pets/1/owner")
        .assert_error(404, "route_not_found");
    app.request("GET", "/v1/pets/abc")
        .header("Content-Encoding", "gzip")
        .body("x")
        .send()
        .assert_error(410, "gone");
    assert_eq!(app.get("/v1/pets").ids().len(), 1);
}
