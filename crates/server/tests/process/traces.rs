//! Traces, as a collector receives them.

mod collector;
mod outages;

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, PgDatabase, Request};

use self::collector::{Collector, Span};
use crate::{
    pets::{create_request, keyed_create_request},
    program::{Program, TOKEN},
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00f067aa0ba902b7";

/// A program that traces every request.
fn tracing(program: Program, endpoint: &str) -> Program {
    program
        .env("ANIMAL_STORE_TRACES__ENDPOINT", endpoint)
        .env("ANIMAL_STORE_TRACES__SAMPLE_RATIO", "1")
}

fn list(address: SocketAddr) -> Request {
    HttpClient::new(address)
        .with_token(TOKEN)
        .request("GET", "/v1/pets")
}

/// The spans `request`.
fn requests(spans: &[Span]) -> Vec<&Span> {
    spans.iter().filter(|span| span.name == "request").collect()
}

/// The names of the children of a span, sorted.
fn children<'a>(spans: &'a [Span], parent: &Span) -> Vec<&'a str> {
    let mut names: Vec<_> = spans
        .iter()
        .filter(|span| span.parent == parent.id)
        .map(|span| &*span.name)
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_request_has_a_span_with_children_and_a_log_line_with_its_trace() {
    let mut collector = Collector::start();
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    create_request(address, TOKEN, "Rex")
        .send()
        .assert_status(201);
    HttpClient::new(address)
        .with_token(TOKEN)
        .get("/v1/pets/1")
        .assert_status(200);
    HttpClient::new(address).get("/v1/pets").assert_status(401);
    HttpClient::new(address).get("/nowhere").assert_status(404);
    // Spans are sent while the service runs.
    collector.wait();
    let exited = running.terminate();

    let (spans, lines) = (collector.spans(), exited.requests());
    let requests = requests(&spans);
    assert_eq!(
        (exited.code, requests.len(), lines.len(), spans.len()),
        (Some(0), 4, 4, 9),
        "{spans:?}"
    );
    let expected = [
        (
            "POST",
            Some("/v1/pets"),
            "201",
            &["authentication", "storage"][..],
        ),
        (
            "GET",
            Some("/v1/pets/{petId}"),
            "200",
            &["authentication", "storage"],
        ),
        ("GET", Some("/v1/pets"), "401", &["authentication"]),
        ("GET", None, "404", &[]),
    ];
    for (line, (method, route, status, kinds)) in lines.iter().zip(expected) {
        let span = requests
            .iter()
            .find(|span| line["trace_id"] == span.trace_id)
            .expect("a span of the trace");
        assert!(
            span.is_server && !span.is_error && span.parent.is_empty(),
            "{span:?}"
        );
        let attributes = [
            "http.request.method",
            "http.route",
            "http.response.status_code",
            "request_id",
        ];
        let found = attributes.map(|key| span.attributes.get(key).map(String::as_str));
        assert_eq!(
            found,
            [
                Some(method),
                route,
                Some(status),
                line["request_id"].as_str()
            ],
            "{span:?}"
        );
        assert_eq!(children(&spans, span), kinds, "{spans:?}");
        let service = ["name", "version"].map(|key| &*span.attributes[&format!("service.{key}")]);
        assert_eq!(service, ["animal-store", env!("CARGO_PKG_VERSION")]);
        assert!(
            !span.attributes["service.instance.id"].is_empty(),
            "{span:?}"
        );
    }
}

#[test]
fn the_storage_span_contains_the_spans_of_postgresql_and_a_server_error_is_an_error_of_its_span() {
    let database = PgDatabase::new();
    let mut collector = Collector::start();
    let mut running = tracing(
        Program::with_postgres(database.url()),
        &collector.endpoint(),
    )
    .start();
    list(running.address()).send().assert_status(200);
    database.sql("DROP TABLE pets");
    list(running.address()).send().assert_status(503);
    running.terminate();

    let spans = collector.spans();
    assert!(
        matches!(requests(&spans)[..], [ok, failed] if !ok.is_error && failed.is_error),
        "{spans:?}"
    );
    let storage = spans
        .iter()
        .find(|span| span.name == "storage")
        .expect("a span of the storage");
    assert_eq!(
        children(&spans, storage),
        ["queue", "statement"],
        "{spans:?}"
    );
}

#[test]
fn no_span_contains_a_secret_or_a_text_of_a_client() {
    let mut collector = Collector::start();
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    keyed_create_request(address, TOKEN, "secret-idempotency-key", "secret-name")
        .send()
        .assert_status(201);
    let client = HttpClient::new(address).with_token("secret-token");
    client
        .get("/v1/pets/secret-path?secret-query=1")
        .assert_status(401);
    client
        .request("SECRET-METHOD", "/secret-path")
        .send()
        .assert_status(404);
    let headers = client
        .request("GET", "/v1/pets")
        .header("User-Agent", "secret-agent")
        .header("tracestate", "secret=x");
    headers
        .header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
        .send()
        .assert_status(401);
    running.terminate();

    let spans = collector.spans();
    let requests = requests(&spans);
    assert_eq!(requests.len(), 4);
    assert!(
        requests
            .iter()
            .any(|span| (&*span.trace_id, &*span.parent) == (TRACE, PARENT)),
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
        let program = tracing(Program::with_key(), &collector.endpoint())
            .env("ANIMAL_STORE_LOG__FORMAT", format);
        let mut running = program.env("ANIMAL_STORE_LOG__FILTER", filter).start();
        let address = running.wait_for(|line| {
            let address = line
                .split(['=', '"', ' '])
                .find(|word| word.starts_with("127.0.0.1:"));
            address
                .filter(|_| line.contains("listening"))
                .and_then(|address| address.parse().ok())
        });
        list(address).send().assert_status(200);
        let output = running.terminate().output();

        let line = output
            .lines()
            .find(|line| line.contains("trace_id"))
            .expect("the line of the request");
        let spans = ["storage", "authentication", "request{", "request:"];
        assert!(
            !spans.iter().any(|span| line.contains(span))
                && !output.contains("http.request.method"),
            "{output}"
        );
    }
}
