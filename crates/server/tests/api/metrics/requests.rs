//! Metrics of requests and of their outcomes.

use std::time::Duration;

use animal_store_test_servers::wait_until;

use super::Samples;
use crate::{
    raw_requests::{begin_post, get},
    test_app::TestApp,
};

fn responses(operation: &str, method: &str, status: u16) -> String {
    format!(r#"requests_total{{operation="{operation}",method="{method}",status="{status}"}}"#)
}

#[test]
fn a_response_is_counted_by_operation_method_and_status() {
    let app = TestApp::start();
    let id = app.create_pet(None);
    let one = format!("/v1/pets/{id}");
    let cases = [
        ("GET", "/v1/pets", true, ("listPets", "GET", 200)),
        ("HEAD", "/v1/pets?limit=1", true, ("listPets", "HEAD", 200)),
        ("GET", "/v1/pets?limit=0", true, ("listPets", "GET", 400)),
        ("GET", "/v1/pets", false, ("listPets", "GET", 401)),
        ("POST", "/v1/pets", true, ("createPet", "POST", 400)),
        ("GET", &one, true, ("getPet", "GET", 200)),
        ("GET", "/v1/pets/0", true, ("getPet", "GET", 404)),
        ("DELETE", &one, true, ("none", "other", 405)),
        ("GET", "/v1/pets/", true, ("none", "GET", 404)),
        ("GET", "/openapi.json", false, ("none", "GET", 200)),
        ("GET", "/nowhere", false, ("none", "GET", 404)),
    ];

    for (method, path, authorized, (operation, label, status)) in cases {
        let before = Samples::read(&app);
        let request = if authorized { app.request(method, path) } else { app.anonymous(method, path) };
        request.send().assert_status(status);

        let after = Samples::read(&app);
        let increase = |series: &str| after.http(series) - before.http(series);
        assert_eq!(increase(&responses(operation, label, status)), 1, "{method} {path}");
        let total = "requests_total";
        assert_eq!(after.sum(total) - before.sum(total), 1, "{method} {path}");
        for other in ["listPets", "createPet", "getPet", "none"] {
            let count = format!(r#"request_duration_seconds_count{{operation="{other}"}}"#);
            assert_eq!(increase(&count), usize::from(other == operation), "{method} {path}");
        }
    }
}

#[test]
fn a_request_that_is_refused_below_the_application_is_counted() {
    // On a busy machine, the other heads arrive within this time.
    let app = TestApp::start_limited(&[], |limits| limits.head_timeout = Duration::from_secs(4));
    let long = "x".repeat(9000);
    for (bytes, status) in [
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n".to_owned(), 408),
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long.repeat(4)), 431),
    ] {
        let series = responses("none", "other", status);
        let before = Samples::read(&app).http(&series);
        app.send(bytes).response().assert_status(status);
        assert_eq!(Samples::read(&app).http(&series) - before, 1, "{status}");
    }
    assert_eq!(Samples::read(&app).sum("request_duration_seconds_count"), 0);
}

#[test]
fn the_expected_responses_are_shown_before_the_first_request() {
    let app = TestApp::start();
    let response = app.management("GET", "/metrics").send();

    for series in [responses("listPets", "GET", 200), responses("createPet", "POST", 503)] {
        assert!(response.text().contains(&format!("animal_store_http_{series} 0\n")), "{series}");
    }
    assert!(!response.text().contains(r#"operation="none",method"#));
}

#[test]
fn requests_in_flight_include_those_that_wait_for_their_body() {
    let app = TestApp::start();
    assert_eq!(Samples::read(&app).http("requests_in_flight"), 0);

    let waiting = [(), ()].map(|()| begin_post(&app, "Content-Length: 30\r\n"));

    assert_eq!(Samples::read(&app).http("requests_in_flight"), 2);
    drop(waiting);
    wait_until(|| Samples::read(&app).http("requests_in_flight") == 0);
}

#[test]
fn only_authenticated_requests_for_a_deprecated_operation_are_counted() {
    let app = TestApp::start();
    let id = app.create_pet(None);
    app.get(&format!("/v1/pets/{id}")).assert_status(200);
    app.request("HEAD", "/v1/pets/0").send().assert_status(404);
    app.anonymous("GET", "/v1/pets/1").send().assert_status(401);
    app.get("/v1/pets").assert_status(200);

    assert_eq!(Samples::read(&app).http(r#"deprecated_requests_total{operation="getPet"}"#), 2);
}

#[test]
fn a_request_whose_client_disconnects_within_its_body_is_counted_as_a_400() {
    let app = TestApp::start();
    drop(begin_post(&app, "Content-Length: 30\r\n"));

    wait_until(|| Samples::read(&app).http(&responses("createPet", "POST", 400)) == 1);
}

#[test]
fn the_counts_of_requests_on_all_workers_are_added_up() {
    let app = TestApp::start();
    let mut connections = [(); 4].map(|()| app.connect());
    for connection in &mut connections {
        for _ in 0..25 {
            connection.send(get("/v1/pets"));
            connection.response().assert_status(200);
        }
    }

    let samples = Samples::read(&app);
    assert_eq!(samples.http(&responses("listPets", "GET", 200)), 100);
    for worker in 0..2 {
        assert!(samples.seconds(&format!(r#"worker_busy_seconds_total{{worker="{worker}"}}"#)) > 0.0);
    }
}
