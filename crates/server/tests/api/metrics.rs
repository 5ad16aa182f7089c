//! `/metrics` of the management listener, and the metrics of connections and requests.

use crate::prelude::*;

/// A response of `/metrics`.
pub(crate) struct Samples(String);

impl Samples {
    #[track_caller]
    pub(crate) fn read(app: &TestApp) -> Self {
        let response = app.management("GET", "/metrics").send();
        Self(response.assert_status(200).text().to_owned())
    }

    /// The value of a series of the API listener, which is its name without the prefix, and its labels.
    #[track_caller]
    pub(crate) fn http(&self, series: &str) -> usize {
        sample(&self.0, &format!("animal_store_http_{series}"))
    }

    /// The sum over all series of the API listener that have this name and labels.
    #[track_caller]
    fn sum(&self, name: &str) -> usize {
        let start = format!("animal_store_http_{name}{{");
        let lines = self.0.lines().filter(|line| line.starts_with(&start));
        let values: Vec<usize> = lines
            .filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
            .collect();
        assert!(!values.is_empty(), "{name}:\n{}", self.0);
        values.iter().sum()
    }
}

fn responses(operation: &str, method: &str, status: u16) -> String {
    format!(r#"requests_total{{operation="{operation}",method="{method}",status="{status}"}}"#)
}

#[test]
fn a_response_is_counted_by_operation_method_and_status() {
    let app = TestApp::start();
    let pet = app.create_pet();
    for (request, status) in [
        (app.request("GET", "/v1/pets"), 200),
        (app.request("HEAD", "/v1/pets"), 200),
        (app.request("GET", &pet), 200),
        (app.anonymous("GET", &pet), 401),
        // The encoded path of the list.
        (app.anonymous("HEAD", "/v1/%70ets"), 401),
        (app.request("PROPFIND", &pet), 405),
    ] {
        request.send().assert_status(status);
    }
    // It is refused below the application, and has no duration.
    let refused = app.send("GET / HTTP/1.1\r\nHost: a b\r\n\r\n").response();
    refused.assert_status(400);

    let samples = Samples::read(&app);
    for (operation, method, status) in [
        ("createPet", "POST", 201),
        ("listPets", "GET", 200),
        ("listPets", "HEAD", 200),
        ("listPets", "HEAD", 401),
        ("getPet", "GET", 200),
        ("getPet", "GET", 401),
        ("none", "other", 405),
        ("none", "other", 400),
    ] {
        let series = responses(operation, method, status);
        assert_eq!(samples.http(&series), 1, "{series}");
    }
    assert_eq!(samples.sum("requests_total"), 8);
    for (operation, count) in [
        ("createPet", 1),
        ("listPets", 3),
        ("getPet", 2),
        ("none", 1),
    ] {
        let series = format!(r#"request_duration_seconds_count{{operation="{operation}"}}"#);
        assert_eq!(samples.http(&series), count, "{operation}");
    }
    // That of a valid API key.
    let deprecated = r#"deprecated_requests_total{operation="getPet"}"#;
    assert_eq!(samples.http(deprecated), 1);
}

#[test]
fn openmetrics_has_the_expected_responses_before_the_first_request_and_management_is_not_counted() {
    let app = TestApp::start();
    for accept in ["*/*", "text/plain"] {
        let request = app.management("GET", "/metrics");
        let response = request.header("Accept", accept).send();
        let open_metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response
            .assert_status(200)
            .assert_header("Content-Type", Some(open_metrics));
        assert!(response.text().ends_with("\n# EOF\n"), "{response:?}");
    }
    let samples = Samples::read(&app);
    for series in [
        responses("listPets", "GET", 200),
        responses("createPet", "POST", 503),
    ] {
        assert_eq!(samples.http(&series), 0, "{series}");
    }
    assert_eq!(samples.sum("requests_total"), 0);
    assert_eq!(samples.http("connections_accepted_total"), 0);
}

#[test]
fn a_request_is_not_in_flight_before_its_body_is_here_and_a_client_that_leaves_gets_a_400() {
    let app = TestApp::start();
    let mut waiting = [(), ()].map(|()| begin_create(&app));
    for (connection, body) in &mut waiting {
        connection.send(&body[1..]);
    }
    assert_eq!(Samples::read(&app).http("requests_in_flight"), 0);

    drop(waiting);
    // A series is there from its first response on.
    wait_until(|| Samples::read(&app).sum("requests_total") == 2);
    let refused = responses("createPet", "POST", 400);
    assert_eq!(Samples::read(&app).http(&refused), 2);
    assert_no_pet(&app);
}

#[test]
fn the_counts_of_all_workers_are_added_up() {
    let app = TestApp::start();
    // New connections go to the worker with the fewest.
    let mut open = [(); 4].map(|()| app.connect());
    for index in 0..100 {
        let connection = &mut open[index % 4];
        connection.send(get("/v1/pets"));
        connection.response().assert_status(200);
    }

    let samples = Samples::read(&app);
    assert_eq!(samples.http(&responses("listPets", "GET", 200)), 100);
    for series in ["connections_open", "connections_accepted_total"] {
        assert_eq!(samples.http(series), 4, "{series}");
    }

    drop(open);
    wait_until(|| Samples::read(&app).http("connections_open") == 0);
    assert_eq!(Samples::read(&app).sum("connections_refused_total"), 0);
}
