//! The export of traces: a collector that fails, and one that is reached over https.

use super::{collector::Collector, list, requests, tracing};
use crate::{prelude::*, tls::GET};

const DOWN: &str = "traces cannot be sent to the collector: spans are dropped";
const AGAIN: &str = "traces are sent to the collector again";

fn endpoint(address: SocketAddr) -> String {
    format!("http://{address}/v1/traces")
}

#[test]
fn a_collector_that_is_down_is_reported_once_per_outage() {
    let (listener, address) = listen();
    drop(listener);
    let listen = || TcpListener::bind(address).expect("a free port");
    let mut running = tracing(Program::with_key(), &endpoint(address)).start();
    list(running.address()).send().assert_status(200);
    let event = running.wait_for_event(DOWN);
    assert_eq!(event["level"], "WARN", "{event}");
    let reason = event["reason"].to_string();
    assert!(reason.contains("Connection refused"), "{event}");
    // Another batch fails: its connection is closed.
    let closing = listen();
    list(running.address()).send().assert_status(200);
    drop(closing.accept().expect("a connection"));
    drop(closing);
    let mut collector = Collector::listen(listen(), None);
    list(running.address()).send().assert_status(200);
    collector.wait();
    let again = running.wait_for_event(AGAIN);
    assert_eq!(again["level"], "INFO", "{again}");
    let exited = running.terminate();
    assert_eq!(exited.events_of(DOWN).len(), 1, "{exited:?}");
}

#[test]
fn a_collector_that_refuses_spans_is_reported_with_its_status() {
    // The exporter has no key of this service.
    let mut collector = Program::with_key().start();
    let program = tracing(Program::with_key(), &endpoint(collector.address()));
    let mut running = program.start();
    list(running.address()).send().assert_status(200);
    let reason = running.wait_for_event(DOWN)["reason"].to_string();
    assert!(
        reason.contains("the collector responded with 401"),
        "{reason}"
    );
}

#[test]
fn a_frozen_collector_delays_no_request_and_the_end_of_the_process_only_briefly() {
    // The system accepts connections, and nothing reads from them.
    let (_frozen, address) = listen();
    let program = tracing(Program::with_key(), &endpoint(address));
    let mut running = program.set("shutdown.timeout", "2m").start();
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

    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_mins(1), "{elapsed:?}");
    let lines = exited.assert_code(0).requests();
    assert_eq!(lines.len(), 4000);
    // A batch of 512 spans fails after five seconds. If requests waited for room in the queue, more than ten would wait
    // that long. On a machine that stalls, a few take long.
    let durations = lines.iter().map(|line| line["microseconds"].as_u64());
    let slow = durations.filter(|duration| *duration > Some(4_000_000));
    let count = slow.count();
    assert!(count < 5, "{count}");
    exited
        .assert_has("the last spans were dropped: the collector of traces did not respond in time");
}

#[test]
fn traces_are_sent_over_https_with_the_headers_of_the_environment() {
    let folder = new_folder();
    let certificates = Certificates::make(folder.path());
    let authority = certificates.authority.to_str().expect("UTF-8");
    let headers = "authorization=Bearer%20collector-token";
    let mut collector = Collector::start_with_tls(&certificates);
    let program = tracing(Program::with_key(), &collector.endpoint())
        .env("SSL_CERT_FILE", authority)
        .env("OTEL_EXPORTER_OTLP_TRACES_HEADERS", headers);
    let mut running = program.set("log.filter", "trace").start();
    list(running.address()).send().assert_status(200);
    collector.wait();
    let exited = running.terminate();

    assert_eq!(requests(&collector.spans()).len(), 1);
    let [request] = collector.received() else {
        panic!("one batch")
    };
    let sent = "\r\nauthorization: bearer collector-token\r\n";
    assert!(request.head.contains(sent), "{}", request.head);
    exited.assert_lacks("collector-token");
    exited.assert_lacks(AGAIN);
}
