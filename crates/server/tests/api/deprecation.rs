//! The deprecation of `getPet`, which every authenticated response of this operation announces, and no other response.

use animal_store_test_servers::Response;

use crate::test_app::{PET, TestApp};

#[track_caller]
fn assert_deprecated(response: &Response, status: u16) {
    response
        .assert_status(status)
        .assert_header("Deprecation", Some("@1767225600"))
        .assert_header("Sunset", Some("Thu, 05 Dec 2030 00:00:00 GMT"))
        .assert_header("Link", Some(r#"<../pets>; rel="successor-version""#));
}

#[track_caller]
fn assert_not_deprecated(response: &Response, status: u16) {
    response.assert_status(status).assert_header("Deprecation", None).assert_header("Sunset", None);
    let link = response.header("Link").unwrap_or_default();
    assert!(!link.contains("successor-version"), "{response:?}");
}

#[test]
fn every_authenticated_response_of_the_operation_announces_it() {
    let app = TestApp::start();
    let id = app.create_pet(None).to_string();

    for method in ["GET", "HEAD"] {
        for (text, status) in [(&*id, 200), ("9223372036854775807", 404), ("abc", 404)] {
            assert_deprecated(&app.request(method, &format!("/v1/pets/{text}")).send(), status);
        }
        for authorization in ["", "Bearer unknown", "Bearer a b"] {
            let request = app.anonymous(method, &format!("/v1/pets/{id}"));
            assert_not_deprecated(&request.header("Authorization", authorization).send(), 401);
        }
    }
}

#[test]
fn no_other_response_announces_it() {
    let app = TestApp::start();
    let id = app.create_pets(3)[0];

    for method in ["GET", "HEAD"] {
        assert_not_deprecated(&app.request(method, "/v1/pets?limit=1").send(), 200);
        assert_not_deprecated(&app.request(method, "/v1/pets?limit=0").send(), 400);
    }
    assert_not_deprecated(&app.post(PET), 201);
    assert_not_deprecated(&app.post("{}"), 400);
    for method in ["POST", "DELETE", "OPTIONS"] {
        assert_not_deprecated(&app.request(method, &format!("/v1/pets/{id}")).send(), 405);
    }
    for path in ["/v1/pets/".to_owned(), format!("/v1/pets/{id}/owner"), format!("/pets/{id}")] {
        assert_not_deprecated(&app.get(&path), 404);
    }
}

#[test]
fn after_its_removal_the_operation_is_a_410_that_still_leads_to_its_successor() {
    let app = TestApp::start_with(&[("http.deprecated_get", "gone")]);
    let id = app.create_pet(None);

    for path in [format!("/v1/pets/{id}"), "/v1/pets/0".to_owned(), "/v1/pets/abc".to_owned()] {
        let response = app.get(&path);
        assert_deprecated(&response, 410);
        response.assert_error(410, "gone");
        app.request("HEAD", &path).send().assert_head_of(&response);
    }
    assert_eq!(app.get("/v1/pets").assert_status(200).ids(), [id]);
}
