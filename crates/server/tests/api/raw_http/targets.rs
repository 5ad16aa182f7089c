//! Request targets in every form that a client can write.

use crate::{
    raw_connection::{RawConnection, RawResponse},
    raw_requests::{animal, assert_no_animal, get, names, post},
    test_app::TestApp,
};

#[track_caller]
fn answer(app: &TestApp, request: &str) -> RawResponse {
    let mut connection = RawConnection::open(app.address);
    connection.send(request);
    connection.response()
}

#[test]
fn an_absolute_target_is_served_by_its_path() {
    let app = TestApp::start();

    let added = answer(&app, &post("Rex").replacen("/v1/pets", "http://other.example/v1/pets", 1));
    let listed = answer(&app, &get("http://other.example:81/v1/pets?limit=1"));

    assert_eq!((added.status, listed.status), (201, 200));
    assert_eq!(listed.json(), serde_json::json!([added.json()]));
}

#[test]
fn no_way_to_write_a_target_leads_past_the_api_key() {
    let app = TestApp::start();
    let body = animal("Rex");
    for target in [
        "/v1/pets",
        "http://store.example/v1/pets",
        "HTTP://STORE.EXAMPLE/v1/pets",
        "http://user:password@store.example/v1/pets",
        "//v1/pets",
        "///v1/pets",
        "/./v1/pets",
        "/v1/../v1/pets",
        "/v1/./pets",
        "/v1//pets",
        "/v1/pets/",
        "/v1/pets/../pets",
        "/v1%2Fpets",
        "/v1%2fpets",
        "/v1/%70ets",
        "/%761/pets",
        "/%2e/v1/pets",
        "/%2e%2e/v1/pets",
        "/v1/%2e%2e/v1/pets",
        "/v1/pets%00",
        "/v1/pets%20",
        "/v1/pets;x=1",
        "/v1\\pets",
        "/V1/pets",
        "/x/../v1/pets",
        "/v1/pets?x",
        "?/v1/pets",
        "*",
        "store.example:80",
        "v1/pets",
    ] {
        for method in ["GET", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT", "TRACE"] {
            let length = body.len();
            let head = format!(
                "{method} {target} HTTP/1.1\r\nHost: store.example\r\nContent-Type: application/json\r\nConnection: close\r\n"
            );
            let mut connection = RawConnection::open(app.address);
            connection.send(format!("{head}Content-Length: {length}\r\n\r\n{body}"));
            connection.finish_sending();
            let response = if method == "HEAD" { connection.response_to_head() } else { connection.response() };
            assert!(matches!(response.status, 400 | 401 | 404), "{method} {target}: {response:?}");
        }
    }
    assert_no_animal(&app);
}

#[test]
fn only_the_path_itself_leads_to_the_animals() {
    let app = TestApp::start();
    for target in [
        "//v1/pets",
        "/v1//pets",
        "/v1/../v1/pets",
        "/v1/./pets",
        "/v1/pets/.",
        "/v1/pets/..",
        "/v1%2Fpets",
        "/v1/pets%2F1",
        "/V1/pets",
        "/v1/pets/",
        "/v1/pets%00",
        "/v1/pets%20",
        "/v1/pets;x=1",
    ] {
        let response = answer(&app, &get(target));
        assert_eq!(response.status, 404, "{target}: {response:?}");
    }
}

#[test]
fn a_target_that_is_no_target_is_refused() {
    let app = TestApp::start();
    for target in ["http://", "http:///v1/pets", "/v1/pets#fragment\u{1}", "://v1/pets", "/v1/pets\u{ff}"] {
        let response = answer(&app, &get(target));
        assert!((400..500).contains(&response.status), "{target}: {response:?}");
    }
    assert_eq!(names(&app), Vec::<String>::new());
}

#[test]
fn percent_signs_that_encode_nothing_are_answered() {
    let app = TestApp::start();
    for target in ["/v1/pets/%", "/v1/pets/%2", "/v1/pets/%zz", "/v1/pets/%ff", "/v1/pets/%C0%80", "/v1/pets/%F0%9F"] {
        answer(&app, &get(target)).assert_error(404, "pet_not_found");
    }
    for query in ["status=%", "status=%zz", "limit=%ff", "cursor=%00"] {
        answer(&app, &get(&format!("/v1/pets?{query}"))).assert_error(400, "invalid_query");
    }
}
