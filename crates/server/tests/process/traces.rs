//! Traces, as a collector receives them.

mod collector;
mod outages;

use std::{
    net::{SocketAddr, TcpListener},
    time::{Duration, Instant},
};

use animal_store_test_servers::{Certificates, HttpClient, PgDatabase, RawConnection, Request};
use serde_json::Value;
use tempfile::TempDir;

use self::collector::{Collector, Mode, Span};
use crate::{
    pets::{create_request, keyed_create_request},
    program::{Exited, Program, TOKEN},
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00f067aa0ba902b7";

/// A program that traces every request.
fn tracing(program: Program, endpoint: &str) -> Program {
    program.env("ANIMAL_STORE_TRACES__ENDPOINT", endpoint).env("ANIMAL_STORE_TRACES__SAMPLE_RATIO", "1")
}

fn list(address: SocketAddr) -> Request {
    HttpClient::new(address).with_token(TOKEN).request("GET", "/v1/pets")
}

/// Lists pets as part of the trace of a client.
fn list_in_trace(address: SocketAddr, flags: &str) {
    list(address).header("traceparent", &format!("00-{TRACE}-{PARENT}-{flags}")).send().assert_status(200);
}

/// The spans `request`.
fn requests(spans: &[Span]) -> Vec<&Span> {
    spans.iter().filter(|span| span.name == "request").collect()
}

/// The names of the children of a span, sorted.
fn children<'a>(spans: &'a [Span], parent: &Span) -> Vec<&'a str> {
    let mut names: Vec<_> = spans.iter().filter(|span| span.parent == parent.id).map(|span| &*span.name).collect();
    names.sort_unstable();
    names
}

/// The lines of requests to the API.
fn request_lines(exited: &Exited) -> Vec<Value> {
    exited.events().into_iter().filter(|event| event["message"] == "request").collect()
}

#[test]
fn a_request_has_a_span_with_children_and_a_log_line_with_its_trace() {
    let mut collector = Collector::start(Mode::Responding);
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    create_request(address, TOKEN, "Rex").header("X-Request-Id", "1").send().assert_status(201);
    list(address).header("X-Request-Id", "2").send().assert_status(200);
    HttpClient::new(address).with_token(TOKEN).get("/v1/pets/1").assert_status(200);
    HttpClient::new(address).get("/v1/pets").assert_status(401);
    HttpClient::new(address).get("/nowhere").assert_status(404);
    // Spans are sent while the service runs.
    collector.wait();
    let exited = running.terminate();

    assert_eq!(exited.code, Some(0), "{exited:?}");
    let spans = collector.spans();
    let requests = requests(&spans);
    let lines = request_lines(&exited);
    assert_eq!((requests.len(), lines.len()), (5, 5), "{spans:?}");
    let expected = [
        ("POST", Some("/v1/pets"), "201", &["authentication", "storage"][..]),
        ("GET", Some("/v1/pets"), "200", &["authentication", "storage"]),
        ("GET", Some("/v1/pets/{petId}"), "200", &["authentication", "storage"]),
        ("GET", Some("/v1/pets"), "401", &["authentication"]),
        ("GET", None, "404", &[]),
    ];
    for (line, (method, route, status, kinds)) in lines.iter().zip(expected) {
        let trace_id = line["trace_id"].as_str().unwrap_or_else(|| panic!("no trace: {line}"));
        let span = requests.iter().find(|span| span.trace_id == trace_id).unwrap_or_else(|| panic!("{line} {spans:?}"));
        assert!(span.is_server && !span.is_error && span.parent.is_empty(), "{span:?}");
        assert_eq!(span.attribute("http.request.method").as_deref(), Some(method), "{span:?}");
        assert_eq!(span.attribute("http.route").as_deref(), route, "{span:?}");
        assert_eq!(span.attribute("http.response.status_code").as_deref(), Some(status), "{span:?}");
        assert_eq!(span.attribute("request_id").as_deref(), line["request_id"].as_str(), "{span:?}");
        assert_eq!(children(&spans, span), kinds, "{spans:?}");
        assert_eq!(span.resource("service.name").as_deref(), Some("animal-store"));
        assert_eq!(span.resource("service.version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert!(span.resource("service.instance.id").is_some_and(|id| !id.is_empty()), "{span:?}");
    }
    let own_trace = |span: &&Span| spans.iter().filter(|other| other.trace_id == span.trace_id).count() <= 3;
    assert!(requests.iter().all(own_trace), "{spans:?}");
}

#[test]
fn the_storage_span_contains_the_spans_of_postgresql() {
    let database = PgDatabase::new();
    let mut collector = Collector::start(Mode::Responding);
    let mut running = tracing(Program::with_postgres(database.url()), &collector.endpoint()).start();
    list(running.address()).send().assert_status(200);
    running.terminate();

    let spans = collector.spans();
    let storage = spans.iter().find(|span| span.name == "storage").expect("a span");
    assert_eq!(children(&spans, storage), ["queue", "statement"], "{spans:?}");
    assert_eq!(spans.len(), 5, "{spans:?}");

    // Without a trace, they have no spans of their own.
    let mut collector = Collector::start(Mode::Responding);
    let program = tracing(Program::with_postgres(database.url()), &collector.endpoint());
    let mut running = program.env("ANIMAL_STORE_TRACES__SAMPLE_RATIO", "0").start();
    list(running.address()).send().assert_status(200);
    running.terminate();
    assert!(collector.received().is_empty(), "{:?}", collector.spans());
}

#[test]
fn a_server_error_is_an_error_of_its_span() {
    let mut collector = Collector::start(Mode::Responding);
    let program = tracing(Program::with_redis_url("redis://127.0.0.1:1"), &collector.endpoint());
    let mut running = program.start();
    list(running.address()).send().assert_status(503);
    running.terminate();

    let spans = collector.spans();
    assert!(matches!(requests(&spans)[..], [span] if span.is_error), "{spans:?}");
}

#[test]
fn the_trace_of_a_client_is_continued() {
    let mut collector = Collector::start(Mode::Responding);
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    list_in_trace(running.address(), "01");
    let malformed = format!("00-{TRACE}-{PARENT}");
    list(running.address()).header("traceparent", &malformed).send().assert_status(200);
    let exited = running.terminate();

    let spans = collector.spans();
    let [continued, started] = requests(&spans)[..] else { panic!("{spans:?}") };
    assert_eq!((&*continued.trace_id, &*continued.parent), (TRACE, PARENT), "{spans:?}");
    assert!(started.trace_id != TRACE && started.parent.is_empty(), "{spans:?}");
    let logged: Vec<_> = request_lines(&exited).iter().map(|line| line["trace_id"].clone()).collect();
    assert_eq!(logged, [TRACE, &started.trace_id]);
}

#[test]
fn no_span_contains_a_secret_or_a_text_of_a_client() {
    let mut collector = Collector::start(Mode::Responding);
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    keyed_create_request(address, TOKEN, "secret-idempotency-key", "secret-name").send().assert_status(201);
    let client = HttpClient::new(address).with_token("secret-token");
    let requests = [
        (client.request("GET", "/v1/pets/secret-path?secret-query=1"), 401),
        (client.request("SECRET-METHOD", "/secret-path"), 404),
        (client.request("GET", "/v1/pets").header("User-Agent", "secret-agent").header("tracestate", "secret=x"), 401),
    ];
    for (request, status) in requests {
        request.header("traceparent", &format!("00-{TRACE}-{PARENT}-01")).send().assert_status(status);
    }
    running.terminate();

    assert_eq!(self::requests(&collector.spans()).len(), 4);
    for request in collector.received() {
        let text = String::from_utf8_lossy(&request.body).to_lowercase();
        assert!(!text.contains("secret") && !text.contains(TOKEN), "{text}");
    }
}

#[test]
fn the_log_contains_no_span_whatever_its_filter_is() {
    let collector = Collector::start(Mode::Responding);
    for (format, filter) in [("text", "info"), ("text", "trace,trace=trace"), ("json", "trace")] {
        let program = tracing(Program::with_key(), &collector.endpoint());
        let program = program.env("ANIMAL_STORE_LOG__FORMAT", format);
        let mut running = program.env("ANIMAL_STORE_LOG__FILTER", filter).start();
        let address = running.wait_for(|line| {
            let (crate::program::Line::Out(text) | crate::program::Line::Err(text)) = line;
            let address = text.split(['=', '"', ' ']).find(|word| word.starts_with("127.0.0.1:"));
            address.filter(|_| text.contains("listening")).and_then(|address| address.parse().ok())
        });
        list(address).send().assert_status(200);
        let output = running.terminate().output();

        let line = output.lines().find(|line| line.contains("trace_id")).expect("the line of the request");
        for span in ["storage", "authentication", "request{", "request:"] {
            assert!(!line.contains(span), "{line}");
        }
        assert!(!output.contains("http.request.method"), "{output}");
    }
}
