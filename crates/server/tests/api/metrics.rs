//! `/metrics` of the management listener, and each metric of the API listener.

mod bounded;
mod connections;
mod requests;
mod samples;

pub(crate) use self::samples::Samples;

use crate::test_app::TestApp;

const OPEN_METRICS: &str = "application/openmetrics-text";

#[test]
fn metrics_have_the_format_that_the_client_accepts() {
    let app = TestApp::start();
    let prometheus = "text/plain; version=0.0.4; charset=utf-8";
    let open_metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let prometheus_accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";

    for (accept, content_type) in [
        ("", prometheus),
        ("text/plain", prometheus),
        ("*/*", prometheus),
        (OPEN_METRICS, open_metrics),
        (prometheus_accept, open_metrics),
    ] {
        let response = app.management("GET", "/metrics").header("Accept", accept).send();
        response.assert_status(200).assert_header("Content-Type", Some(content_type));
        let text = response.text();
        let is_open_metrics = content_type == open_metrics;
        assert_eq!(text.ends_with("\n# EOF\n"), is_open_metrics, "{text}");
        assert_eq!(text.contains("\n# TYPE animal_store_http_requests counter\n"), is_open_metrics, "{text}");
        assert_eq!(text.contains("\n# TYPE animal_store_http_requests_total counter\n"), !is_open_metrics, "{text}");
    }
    let head = app.management("HEAD", "/metrics").send();
    head.assert_status(200).assert_header("Content-Type", Some(prometheus));
    assert!(head.body.is_empty());
}

#[test]
fn requests_to_the_management_listener_are_not_counted() {
    let app = TestApp::start();
    for path in ["/live", "/ready", "/metrics", "/nowhere"] {
        let _ = app.management("GET", path).send();
    }
    let samples = Samples::read(&app);
    assert_eq!(samples.sum("requests_total"), 0);
    assert_eq!(samples.sum("connections_accepted_total"), 0);
}
