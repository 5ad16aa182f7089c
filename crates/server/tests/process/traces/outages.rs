//! The export of traces: a collector that fails, and one that is reached over https.

use super::*;

#[test]
fn a_collector_that_is_down_is_reported_once_per_outage() {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let endpoint = format!("http://{address}/v1/traces");
    let mut running = tracing(Program::with_key(), &endpoint).start();
    let down = "traces cannot be sent to the collector: spans are dropped";
    list(running.address()).send().assert_status(200);
    let event = running.wait_for_event(down);
    assert_eq!(event["level"], "WARN", "{event}");
    assert!(event["reason"].as_str().is_some_and(|reason| reason.contains("Connection refused")), "{event}");
    // More batches fail.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        list(running.address()).send().assert_status(200);
    }
    let mut collector = Collector::start_at(address);
    list(running.address()).send().assert_status(200);
    collector.wait();
    let again = running.wait_for_event("traces are sent to the collector again");
    assert_eq!(again["level"], "INFO", "{again}");
    let exited = running.terminate();

    let warnings = exited.events().iter().filter(|event| event["message"] == down).count();
    assert_eq!(warnings, 1, "{exited:?}");
}

#[test]
fn a_frozen_collector_delays_no_request_and_the_end_of_the_process_only_briefly() {
    let collector = Collector::start(Mode::Frozen);
    let mut running = tracing(Program::with_key(), &collector.endpoint()).start();
    let address = running.address();
    // More spans than the queue holds.
    let request = format!("GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let mut connection = RawConnection::open(address);
    for _ in 0..40 {
        connection.send(request.repeat(100));
        for _ in 0..100 {
            connection.response().assert_status(200);
        }
    }
    let start = Instant::now();
    let exited = running.terminate();

    assert_eq!(exited.code, Some(0), "{exited:?}");
    // The timeout of the shutdown is longer.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    // If requests waited for the queue, one of them would wait for seconds after each 512 spans beyond its capacity. A
    // busy machine may delay a few.
    let lines = request_lines(&exited);
    let slow = lines.iter().filter(|line| line["microseconds"].as_u64() >= Some(1_000_000)).count();
    assert!(slow < 4, "{slow} requests waited");
    let last = "the last spans were dropped: the collector of traces did not respond in time";
    assert!(exited.events().iter().any(|event| event["message"] == last), "{exited:?}");
}

#[test]
fn traces_are_sent_over_https_with_the_headers_of_the_environment() {
    let folder = TempDir::new().expect("a folder");
    let certificates = Certificates::make(folder.path());
    let mut collector = Collector::start_with_tls(&certificates);
    let authority = certificates.authority.to_str().expect("UTF-8");
    let program = tracing(Program::with_key(), &collector.endpoint());
    let headers = "authorization=Bearer%20collector-token";
    let program = program.env("SSL_CERT_FILE", authority).env("OTEL_EXPORTER_OTLP_TRACES_HEADERS", headers);
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    list(running.address()).send().assert_status(200);
    collector.wait();
    let exited = running.terminate();

    assert_eq!(requests(&collector.spans()).len(), 1);
    let [request] = collector.received() else { panic!("one batch") };
    assert!(request.head.contains("\r\nauthorization: bearer collector-token\r\n"), "{}", request.head);
    assert!(!exited.output().contains("collector-token"), "{exited:?}");
}
