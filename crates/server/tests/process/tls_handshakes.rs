//! Handshakes that are never completed.

use std::{
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use animal_store_test_servers::{Certificates, HttpClient, RawConnection, wait_until};

use crate::{
    program::Program,
    tls::{self, GET},
};

/// Returns the value of a series of the metrics.
fn metric(management: SocketAddr, series: &str) -> u64 {
    let text = HttpClient::new(management).get("/metrics").text().to_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("{series} is missing: {text}"))
}

fn handshakes(management: SocketAddr, result: &str) -> u64 {
    metric(management, &format!("animal_store_http_tls_handshakes_total{{result=\"{result}\"}}"))
}

/// A program whose handshakes have a timeout that the test does not reach.
fn program() -> (Program, Certificates) {
    let (program, certificates) = tls::program();
    (program.env("ANIMAL_STORE_HTTP__TLS__HANDSHAKE_TIMEOUT", "10m"), certificates)
}

#[test]
fn a_flood_of_handshakes_does_not_keep_clients_out() {
    let (program, certificates) = program();
    let mut running = program
        .env("ANIMAL_STORE_HTTP__TLS__MAX_HANDSHAKES", "50")
        .env("ANIMAL_STORE_HTTP__MAX_CONNECTIONS", "200")
        .start();
    let (address, management) = (running.address(), running.management_address());
    let mut flood = Vec::new();
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        flood.extend((0..25).map(|_| TcpStream::connect(address).expect("a connection")));
        let start = Instant::now();
        let mut connection = RawConnection::open_tls(address, &certificates.authority);
        connection.send(GET);
        connection.response().assert_status(200);
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < RawConnection::TIMEOUT / 2, "{slowest:?}");
    assert_eq!(handshakes(management, "complete"), 20);
    wait_until(|| handshakes(management, "evicted") >= 450);
}

#[test]
fn a_shutdown_does_not_wait_for_handshakes() {
    let (program, _certificates) = program();
    let mut running = program.start();
    let (address, management) = (running.address(), running.management_address());
    let _silent = TcpStream::connect(address).expect("a connection");
    wait_until(|| metric(management, "animal_store_http_connections_open") == 1);

    let start = Instant::now();
    let exited = running.terminate();
    assert_eq!(exited.code, Some(0), "{exited:?}");
    assert!(exited.events().iter().any(|event| event["message"] == "all requests were completed"), "{exited:?}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn handshakes_and_the_end_of_the_certificate_are_in_the_metrics() {
    let (program, certificates) = tls::program();
    let mut running =
        program.env("ANIMAL_STORE_HTTP__TLS__HANDSHAKE_TIMEOUT", "8s").env("ANIMAL_STORE_LOG__FILTER", "debug").start();
    let (address, management) = (running.address(), running.management_address());
    tls::s_client(address, &certificates.authority, &[]);
    tls::s_client(address, &certificates.authority, &["-alpn", "h2"]);
    let _silent = TcpStream::connect(address).expect("a connection");

    wait_until(|| ["complete", "failed", "timeout"].iter().all(|result| handshakes(management, result) == 1));
    assert_eq!(metric(management, "animal_store_http_tls_certificate_expiry_timestamp_seconds"), 67_090_118_400);
    let event = running.wait_for_log(|event| event["message"] == "TLS handshake failed");
    assert_eq!(event["level"], "DEBUG", "{event}");
    assert!(event["client"].as_str().is_some_and(|client| client.starts_with("127.0.0.1:")), "{event}");
}
