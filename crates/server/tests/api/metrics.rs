//! `/metrics` of the management listener, and the metrics of connections and requests.

use std::{collections::BTreeMap, time::Duration};

use animal_store_test_servers::wait_until;

use crate::{
    raw_requests::{assert_no_pet, begin_create, get},
    test_app::TestApp,
};

/// The values of a response of `/metrics`, by series.
pub(crate) struct Samples(BTreeMap<String, String>);

impl Samples {
    #[track_caller]
    pub(crate) fn read(app: &TestApp) -> Self {
        let response = app.management("GET", "/metrics").send();
        let lines = response.assert_status(200).text().lines().filter(|line| !line.starts_with('#'));
        let samples = lines.map(|line| line.rsplit_once(' ').expect("a series and a value"));
        Self(samples.map(|(series, value)| (series.to_owned(), value.to_owned())).collect())
    }

    /// The value of a series of the API listener, which is its name without the prefix, and its labels. 0 if it is
    /// absent.
    #[track_caller]
    pub(crate) fn http(&self, series: &str) -> usize {
        let value = self.0.get(&format!("animal_store_http_{series}"));
        value.map_or(0, |value| value.parse().expect("a whole number"))
    }

    /// The sum over all series of the API listener that have this name.
    fn sum(&self, name: &str) -> usize {
        let name = format!("animal_store_http_{name}");
        let series = self.0.iter().filter(|(series, _)| series.split('{').next() == Some(&name));
        series.map(|(_, value)| value.parse::<usize>().expect("a whole number")).sum()
    }
}

fn responses(operation: &str, method: &str, status: u16) -> String {
    format!(r#"requests_total{{operation="{operation}",method="{method}",status="{status}"}}"#)
}

#[test]
fn metrics_have_the_format_of_openmetrics_whatever_the_client_accepts() {
    let app = TestApp::start();
    for accept in ["*/*", "text/plain"] {
        let response = app.management("GET", "/metrics").header("Accept", accept).send();
        let open_metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response.assert_status(200).assert_header("Content-Type", Some(open_metrics));
        assert!(response.text().ends_with("\n# EOF\n"), "{}", response.text());
    }
}

#[test]
fn a_response_is_counted_by_operation_method_and_status() {
    let app = TestApp::start();
    let pet = app.create_pet();
    for (request, operation, method, status) in [
        (app.request("GET", "/v1/pets"), "listPets", "GET", 200),
        (app.request("HEAD", "/v1/pets?limit=1"), "listPets", "HEAD", 200),
        (app.request("GET", "/v1/pets?limit=0"), "listPets", "GET", 400),
        (app.anonymous("GET", "/v1/pets"), "listPets", "GET", 401),
        (app.request("POST", "/v1/pets"), "createPet", "POST", 400),
        (app.request("GET", &pet), "getPet", "GET", 200),
        (app.request("GET", "/v1/pets/0"), "getPet", "GET", 404),
        (app.anonymous("GET", &pet), "getPet", "GET", 401),
        (app.request("DELETE", &pet), "none", "other", 405),
        (app.anonymous("GET", "/openapi.json"), "none", "GET", 200),
        (app.anonymous("GET", "/nowhere"), "none", "GET", 404),
    ] {
        let before = Samples::read(&app);
        request.send().assert_status(status);
        let after = Samples::read(&app);

        let increase = |series: &str| after.http(series) - before.http(series);
        assert_eq!(increase(&responses(operation, method, status)), 1, "{operation} {method} {status}");
        assert_eq!(after.sum("requests_total") - before.sum("requests_total"), 1);
        let count = format!(r#"request_duration_seconds_count{{operation="{operation}"}}"#);
        assert_eq!(increase(&count), 1);
    }
    // Those of a valid API key.
    assert_eq!(Samples::read(&app).http(r#"deprecated_requests_total{operation="getPet"}"#), 2);
}

#[test]
fn a_request_that_is_refused_below_the_application_is_counted() {
    let app = TestApp::start_changed(&[], |config| config.http.limits.head_timeout = Duration::from_secs(4));
    let long = "x".repeat(9000);
    for (bytes, status) in [
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n".to_owned(), 408),
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long.repeat(4)), 431),
    ] {
        app.send(bytes).response().assert_status(status);
        assert_eq!(Samples::read(&app).http(&responses("none", "other", status)), 1, "{status}");
    }
    assert_eq!(Samples::read(&app).sum("request_duration_seconds_count"), 0);
}

#[test]
fn the_expected_responses_are_shown_before_the_first_request_and_management_is_not_counted() {
    let app = TestApp::start();
    let response = app.management("GET", "/metrics").send();
    for series in [responses("listPets", "GET", 200), responses("createPet", "POST", 503)] {
        assert!(response.text().contains(&format!("animal_store_http_{series} 0\n")), "{series}");
    }
    let samples = Samples::read(&app);
    assert_eq!((samples.sum("requests_total"), samples.sum("connections_accepted_total")), (0, 0));
}

#[test]
fn requests_in_flight_include_those_that_wait_for_their_body_until_their_client_disconnects() {
    let app = TestApp::start();
    let mut waiting = [(), ()].map(|()| begin_create(&app));
    for (connection, body) in &mut waiting {
        connection.send(&body[1..]);
    }
    assert_eq!(Samples::read(&app).http("requests_in_flight"), 2);

    drop(waiting);
    wait_until(|| Samples::read(&app).http("requests_in_flight") == 0);
    assert_eq!(Samples::read(&app).http(&responses("createPet", "POST", 400)), 2);
    assert_no_pet(&app);
}

#[test]
fn the_counts_of_all_workers_are_added_up() {
    let app = TestApp::start_with(&[("http.max_connections", "21")]);
    // New connections go to the worker with the fewest.
    let mut open = [(); 4].map(|()| app.connect());
    for index in 0..100 {
        let connection = &mut open[index % 4];
        connection.send(get("/v1/pets"));
        connection.response().assert_status(200);
    }

    let samples = Samples::read(&app);
    assert_eq!(samples.http(&responses("listPets", "GET", 200)), 100);
    assert_eq!((samples.http("connections_open"), samples.http("connections_accepted_total")), (4, 4));
    // Each of the two workers has an equal share.
    assert_eq!(samples.http("connections_limit"), 20);
    for worker in 0..2 {
        let busy = &samples.0[&format!(r#"animal_store_http_worker_busy_seconds_total{{worker="{worker}"}}"#)];
        assert!(busy.parse::<f64>().expect("a number") > 0.0);
    }

    drop(open);
    wait_until(|| Samples::read(&app).http("connections_open") == 0);
    assert_eq!(Samples::read(&app).sum("connections_refused_total"), 0);
}
