//! Shutdown by signals.

use std::net::{SocketAddr, TcpStream};

use animal_store_test_servers::{HttpClient, RawConnection, wait_until};

use crate::program::{Exited, Program, TOKEN};

const BODY: &str = r#"{"name":"Rex","categoryId":1}"#;

/// Sends the head of a create and waits until the request is in flight. The body is still to come.
#[track_caller]
fn begin_request(address: SocketAddr) -> RawConnection {
    let mut connection = RawConnection::open(address);
    connection.send(format!(
        "POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        BODY.len()
    ));
    assert_eq!(connection.response().head, "HTTP/1.1 100 Continue\r\n\r\n");
    connection
}

#[track_caller]
fn assert_graceful(exited: &Exited) {
    assert_eq!((exited.code, &exited.stderr), (Some(0), &vec![]), "{exited:?}");
}

/// Asserts an exit with one line on standard error that contains these words.
#[track_caller]
fn assert_cut_off(exited: &Exited, words: [&str; 2]) {
    assert_eq!((exited.code, exited.stderr.len()), (Some(1), 1), "{exited:?}");
    assert!(words.iter().all(|word| exited.stderr[0].contains(word)), "{exited:?}");
}

#[test]
fn a_signal_shuts_an_idle_service_down() {
    for signal in ["TERM", "INT"] {
        let mut running = Program::with_key().start();
        running.address();
        running.signal(signal);
        assert_graceful(&running.wait());
    }
}

#[test]
fn a_signal_shuts_a_service_with_idle_connections_down() {
    for signal in ["TERM", "INT"] {
        let mut running = Program::with_key().start();
        let address = running.address();
        let unused = RawConnection::open(address);
        let mut half = RawConnection::open(address);
        half.send("GET /v1/pets HT");
        let request = HttpClient::new(address).with_token(TOKEN).request("GET", "/v1/pets");
        let mut kept = request.begin().expect("a connection");
        let response = kept.response();
        assert!(response.head.starts_with("HTTP/1.1 200 OK\r\n") && !response.closes(), "{response:?}");

        running.signal(signal);

        // The wait is shorter than the shutdown timeout.
        assert_graceful(&running.wait());
        drop((unused, half, kept));
    }
}

#[test]
fn a_request_in_flight_is_completed_before_the_exit() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let mut connection = begin_request(address);

    running.signal("TERM");
    // From then on, every connection is closed with its next response.
    wait_until(|| TcpStream::connect(address).is_err());
    connection.send(BODY);

    let responses = connection.responses_to_end();
    let [response] = &responses[..] else { panic!("one response: {responses:?}") };
    assert_eq!((response.status, response.header("connection")), (201, Some("close")), "{response:?}");
    assert_graceful(&running.wait());
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    for signals in [["TERM", "TERM"], ["INT", "INT"], ["TERM", "INT"]] {
        let mut running = Program::with_key().start();
        let hanging = begin_request(running.address());
        running.signal(signals[0]);
        running.wait_for_event("shutting down");

        running.signal(signals[1]);

        // The wait is shorter than the shutdown timeout.
        assert_cut_off(&running.wait(), ["signal", "cut off"]);
        drop(hanging);
    }
}

#[test]
fn a_request_that_outlasts_the_shutdown_timeout_is_cut_off() {
    let mut running = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "300ms").start();
    let mut hanging = begin_request(running.address());

    assert_cut_off(&running.terminate(), ["shutdown timeout", "1 request"]);
    // The connection may be reset or closed, but nothing is sent.
    hanging.assert_closed();
}
