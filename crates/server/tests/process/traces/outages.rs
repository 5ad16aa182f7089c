//! The export of traces: a collector that fails, and one that is reached over https.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use animal_store_test_servers::{Certificates, RawConnection};
use tempfile::TempDir;

use super::{collector::Collector, list, requests, tracing};
use crate::{program::Program, tls::GET};

#[test]
fn a_collector_that_is_down_is_reported_once_per_outage() {
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port");
    let endpoint = format!("http://{address}/v1/traces");
    let mut running = tracing(Program::with_key(), &endpoint).start();
    let down = "traces cannot be sent to the collector: spans are dropped";
    list(running.address()).send().assert_status(200);
    let event = running.wait_for_event(down);
    assert_eq!(event["level"], "WARN", "{event}");
    assert!(
        event["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("Connection refused")),
        "{event}"
    );
    // Another batch fails: its connection is closed.
    let closing = TcpListener::bind(address).expect("a free port");
    list(running.address()).send().assert_status(200);
    drop(closing.accept().expect("a connection"));
    drop(closing);
    let mut collector = Collector::listen(TcpListener::bind(address).expect("a free port"), None);
    list(running.address()).send().assert_status(200);
    collector.wait();
    let again = running.wait_for_event("traces are sent to the collector again");
    assert_eq!(again["level"], "INFO", "{again}");
    let exited = running.terminate();

    let warnings = exited
        .events()
        .iter()
        .filter(|event| event["message"] == down)
        .count();
    assert_eq!(warnings, 1, "{exited:?}");
}

#[test]
fn a_frozen_collector_delays_no_request_and_the_end_of_the_process_only_briefly() {
    // The system accepts connections, and nothing reads from them.
    let frozen = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!(
        "http://{}/v1/traces",
        frozen.local_addr().expect("an address")
    );
    let mut running = tracing(Program::with_key(), &endpoint)
        .env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "2m")
        .start();
    let mut connection = RawConnection::open(running.address());
    // More spans than the queue holds.
    for _ in 0..40 {
        connection.send(GET.repeat(100));
        for _ in 0..100 {
            connection.response().assert_status(200);
        }
    }
    let start = Instant::now();
    let exited = running.terminate();

    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(exited.code, Some(0), "{exited:?}");
    // A batch of 512 spans fails after five seconds. If requests waited for room in the queue, some would wait that
    // long.
    let lines = exited.requests();
    let slowest = lines
        .iter()
        .filter_map(|line| line["microseconds"].as_u64())
        .max();
    assert!(
        lines.len() == 4000 && slowest < Some(4_000_000),
        "{slowest:?} of {} requests",
        lines.len()
    );
    let last = "the last spans were dropped: the collector of traces did not respond in time";
    assert!(
        exited.events().iter().any(|event| event["message"] == last),
        "{exited:?}"
    );
}

#[test]
fn traces_are_sent_over_https_with_the_headers_of_the_environment() {
    let folder = TempDir::new().expect("a folder");
    let certificates = Certificates::make(folder.path());
    let mut collector = Collector::start_with_tls(&certificates);
    let program = tracing(Program::with_key(), &collector.endpoint())
        .env(
            "SSL_CERT_FILE",
            certificates.authority.to_str().expect("UTF-8"),
        )
        .env(
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "authorization=Bearer%20collector-token",
        );
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    list(running.address()).send().assert_status(200);
    collector.wait();
    let exited = running.terminate();

    assert_eq!(requests(&collector.spans()).len(), 1);
    let [request] = collector.received() else {
        panic!("one batch")
    };
    assert!(
        request
            .head
            .contains("\r\nauthorization: bearer collector-token\r\n"),
        "{}",
        request.head
    );
    assert!(!exited.output().contains("collector-token"), "{exited:?}");
}
