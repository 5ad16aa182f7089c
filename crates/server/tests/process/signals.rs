//! How the program is told to end.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use crate::program::{Program, TOKEN, read_to_end, send};

const BODY: &str = r#"{"name":"Rex","categoryId":1}"#;

/// A POST whose body is still to come, already in flight.
#[track_caller]
fn begin_request(address: SocketAddr) -> TcpStream {
    let stream = send(
        address,
        &format!(
            "POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            BODY.len()
        ),
    );
    // The invitation to continue says that the request is in flight.
    let mut invitation = [0; 25];
    (&stream).read_exact(&mut invitation).expect("100 Continue");
    assert_eq!(&invitation, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[track_caller]
fn wait_until_refused(address: SocketAddr) {
    let start = Instant::now();
    while TcpStream::connect_timeout(&address, Duration::from_secs(10)).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(10), "connections are still accepted");
    }
}

#[test]
fn a_signal_ends_it_in_order_while_it_is_idle() {
    for signal in ["TERM", "INT"] {
        let mut running = Program::with_key().start();
        running.address();

        running.signal(signal);

        let ended = running.wait();
        assert_eq!((ended.code, &ended.stderr), (Some(0), &Vec::new()), "{signal}: {ended:?}");
    }
}

#[test]
fn a_signal_ends_it_in_order_while_connections_are_open() {
    for signal in ["TERM", "INT"] {
        let mut running = Program::with_key().start();
        let address = running.address();
        let unused = send(address, "");
        let half = send(address, "GET /v1/pets HT");
        let kept = send(address, &format!("GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"));
        let mut status = String::new();
        BufReader::new(&kept).read_line(&mut status).expect("an answer");
        assert_eq!(status, "HTTP/1.1 200 OK\r\n");

        let start = Instant::now();
        running.signal(signal);

        let ended = running.wait();
        assert_eq!((ended.code, &ended.stderr), (Some(0), &Vec::new()), "{signal}: {ended:?}");
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        drop((unused, half, kept));
    }
}

#[test]
fn a_request_in_flight_is_answered_before_the_end() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let mut connection = begin_request(address);

    running.signal("TERM");
    // From then on, every connection knows of the end.
    wait_until_refused(address);
    connection.write_all(BODY.as_bytes()).expect("the connection is still open");

    let response = read_to_end(connection);
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    assert!(response.to_lowercase().contains("\r\nconnection: close\r\n"), "{response}");
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once_with_one_sentence() {
    for signals in [["TERM", "TERM"], ["INT", "INT"], ["TERM", "INT"]] {
        let mut running = Program::with_key().start();
        let hanging = begin_request(running.address());
        running.signal(signals[0]);
        running.wait_for_event("shutting down");

        let start = Instant::now();
        running.signal(signals[1]);

        let ended = running.wait();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.len(), 1, "{ended:?}");
        assert!(ended.stderr[0].contains("signal") && ended.stderr[0].contains("cut off"), "{ended:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        drop(hanging);
    }
}

#[test]
fn a_request_that_hangs_beyond_the_timeout_is_cut_off_and_the_exit_code_says_so() {
    let mut running = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "300ms").start();
    let hanging = begin_request(running.address());

    running.signal("TERM");

    let ended = running.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stderr.len(), 1, "{ended:?}");
    assert!(ended.stderr[0].contains("1 request"), "{ended:?}");
    let mut rest = Vec::new();
    // However it is cut off, nothing is answered.
    let _ = (&hanging).read_to_end(&mut rest);
    assert_eq!(rest, b"");
}
