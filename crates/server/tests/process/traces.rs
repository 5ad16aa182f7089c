//! Traces, as a collector receives them.

mod collector;
mod outages;

use self::collector::{Collector, Span};
use crate::prelude::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00f067aa0ba902b7";

/// A program that traces every request.
fn tracing(program: Program, endpoint: &str) -> Program {
    let program = program.set("traces.sample_ratio", "1");
    program.set("traces.endpoint", endpoint)
}

fn list(address: SocketAddr) -> Request {
    let client = HttpClient::new(address).with_token(TOKEN);
    client.request("GET", "/v1/pets")
}

/// The spans `request`.
fn requests(spans: &[Span]) -> Vec<&Span> {
    spans.iter().filter(|span| span.name == "request").collect()
}

/// The names of the children of a span, sorted, with a space between them.
fn children(spans: &[Span], parent: &Span) -> String {
    let children = spans.iter().filter(|span| span.parent == parent.id);
    let mut names: Vec<_> = children.map(|span| &*span.name).collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn a_request_has_a_span_with_children_and_a_log_line_with_its_trace() {
    let mut collector = Collector::start();
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    let anonymous = HttpClient::new(address);
    let created = create_request(address, "Rex").send();
    created.assert_status(201);
    running.client().get("/v1/pets/1").assert_status(200);
    anonymous.get("/v1/pets").assert_status(401);
    anonymous.get("/nowhere").assert_status(404);
    // Spans are sent while the service runs.
    collector.wait();
    let exited = running.terminate();

    let spans = collector.spans();
    let lines = exited.assert_code(0).requests();
    assert_eq!((spans.len(), lines.len()), (9, 4), "{spans:?}");
    let both = "authentication storage";
    for (line, (method, route, status, kinds)) in lines.iter().zip([
        ("POST", Some("/v1/pets"), "201", both),
        ("GET", Some("/v1/pets/{petId}"), "200", both),
        ("GET", Some("/v1/pets"), "401", "authentication"),
        ("GET", None, "404", ""),
    ]) {
        let requests = requests(&spans);
        let mut requests = requests.iter();
        let span = requests.find(|span| line["trace_id"] == span.trace_id);
        let span = span.expect("a span of the trace");
        assert!(span.is_server && !span.is_error && span.parent.is_empty());
        for (attribute, expected) in [
            ("http.request.method", Some(method)),
            ("http.route", route),
            ("http.response.status_code", Some(status)),
            ("request_id", line["request_id"].as_str()),
            ("service.name", Some("animal-store")),
            ("service.version", Some(env!("CARGO_PKG_VERSION"))),
        ] {
            let found = span.attributes.get(attribute).map(String::as_str);
            assert_eq!(found, expected, "{attribute} of {span:?}");
        }
        assert!(!span.attributes["service.instance.id"].is_empty());
        assert_eq!(children(&spans, span), kinds, "{spans:?}");
    }
}

#[test]
fn the_storage_span_contains_the_spans_of_postgresql_and_a_server_error_is_an_error_of_its_span() {
    let database = PgDatabase::new();
    let mut collector = Collector::start();
    let program = Program::with_postgres(database.url());
    let mut running = tracing(program, &collector.endpoint()).start();
    list(running.address()).send().assert_status(200);
    database.sql("DROP TABLE pets");
    list(running.address()).send().assert_status(503);
    running.terminate();

    let spans = collector.spans();
    let errors: Vec<_> = requests(&spans).iter().map(|span| span.is_error).collect();
    assert_eq!(errors, [false, true], "{spans:?}");
    let storage = spans.iter().find(|span| span.name == "storage");
    let storage = storage.expect("a span of the storage");
    assert_eq!(children(&spans, storage), "queue statement", "{spans:?}");
}

#[test]
fn no_span_contains_a_secret_or_a_text_of_a_client() {
    let mut collector = Collector::start();
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    let create = keyed_create_request(address, "secret-idempotency-key", "secret-name");
    create.send().assert_status(201);
    let client = HttpClient::new(address).with_token("secret-token");
    let unknown = client.get("/v1/pets/secret-path?secret-query=1");
    unknown.assert_status(401);
    let unknown = client.request("SECRET-METHOD", "/secret-path").send();
    unknown.assert_status(404);
    let traced = client
        .request("GET", "/v1/pets")
        .header("User-Agent", "secret-agent")
        .header("tracestate", "secret=x")
        .header("traceparent", &format!("00-{TRACE}-{PARENT}-01"));
    traced.send().assert_status(401);
    running.terminate();

    let spans = collector.spans();
    let requests = requests(&spans);
    assert_eq!(requests.len(), 4);
    let mut requests = requests.iter();
    assert!(
        requests.any(|span| span.trace_id == TRACE && span.parent == PARENT),
        "{spans:?}"
    );
    for request in collector.received() {
        let text = String::from_utf8_lossy(&request.body).to_lowercase();
        assert!(!text.contains("secret") && !text.contains(TOKEN), "{text}");
    }
}

#[test]
fn the_log_contains_no_span_whatever_its_filter_is() {
    let collector = Collector::start();
    for (format, filter) in [
        ("text", "info"),
        ("text", "trace,trace=trace"),
        ("json", "trace"),
    ] {
        let program = tracing(Program::with_key(), &collector.endpoint());
        let program = program.set("log.format", format).set("log.filter", filter);
        let mut running = program.start();
        let line = running.wait_for(|line| line.contains("listening").then(|| line.to_owned()));
        let mut words = line.split(['=', '"', ' ']);
        let address = words.find(|word| word.starts_with("127.0.0.1:"));
        let address = address.expect("an address").parse().expect("an address");
        list(address).send().assert_status(200);
        let exited = running.terminate();

        exited.assert_lacks("http.request.method");
        let line = exited.stdout.iter().find(|line| line.contains("trace_id"));
        let line = line.expect("the line of the request");
        for span in ["storage", "authentication", "request{", "request:"] {
            assert!(!line.contains(span), "{line}");
        }
    }
}
