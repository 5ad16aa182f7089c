//! A listening socket that a service manager keeps and passes to each process (`LISTEN_FDS`).

use std::{
    iter,
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::unix::net::UnixListener,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{RawConnection, wait_until};
use tempfile::TempDir;

use crate::{
    pets::status,
    program::{Program, Running, TOKEN},
};

/// A program with the default drain delay, which gets a duplicate of this socket.
fn with_socket(listener: &TcpListener) -> Program {
    let program = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY", "");
    program.socket(listener.try_clone().expect("a duplicate"))
}

fn request() -> String {
    format!("GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_socket_that_is_passed_is_served_in_place_of_the_configured_address() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let configured = taken.local_addr().unwrap().to_string();
    let mut running = with_socket(&socket).args(&["--listen", &configured]).start();

    let event = running.wait_for_event("listening");
    let address = socket.local_addr().unwrap();
    assert_eq!((&event["inherited"], &event["address"]), (&true.into(), &address.to_string().into()), "{event}");
    assert_eq!(status(address, TOKEN), 200);
    running.terminate().assert_success();
}

#[test]
fn another_number_or_kind_of_sockets_is_an_error() {
    let not_connected = TcpStream::connect(TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()).unwrap();
    let folder = TempDir::new().unwrap();
    let with_path = UnixListener::bind(folder.path().join("http.sock")).unwrap();
    for (program, message) in [
        (Program::with_key().sockets(TcpListener::bind("127.0.0.1:0").unwrap(), 2), "passed 2 sockets"),
        (Program::with_key().socket(UdpSocket::bind("127.0.0.1:0").unwrap()), "no listening TCP socket"),
        (Program::with_key().socket(with_path), "no listening TCP socket"),
        (Program::with_key().socket(tempfile::tempfile().unwrap()), "no listening TCP socket"),
        (Program::with_key().socket(not_connected), "does not listen"),
    ] {
        program.run().assert_error(1, &[message, "LISTEN_FDS"]);
    }
}

#[test]
fn a_connection_that_waits_between_two_processes_is_served_by_the_second() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut first = with_socket(&socket).start();
    first.address();
    first.terminate().assert_success();

    let mut waiting = RawConnection::open(socket.local_addr().unwrap());
    waiting.send(request());
    let mut second = with_socket(&socket).start();
    second.address();
    assert_eq!(waiting.response().status, 200);
}

#[test]
fn without_a_drain_delay_that_is_set_sigterm_does_not_wait_for_one() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let duration = || {
        let mut running = with_socket(&socket).start();
        running.address();
        let start = Instant::now();
        running.terminate().assert_success();
        start.elapsed()
    };
    // The default of another socket is 5 s; a pause that is not noticed takes 2 s. A busy machine may delay an end.
    let durations: Vec<_> =
        iter::repeat_with(duration).take(5).take_while(|&end| end >= Duration::from_secs(2)).collect();
    assert!(durations.len() < 5, "{durations:?}");
}

/// Sends requests, each on its own connection, until `end`.
fn send_requests(address: SocketAddr, end: &AtomicBool, responses: &AtomicUsize) -> Result<(), String> {
    while !end.load(Relaxed) {
        let mut connection = RawConnection::try_open(address).map_err(|error| format!("{error} in connect"))?;
        connection.try_send(request()).map_err(|error| format!("{error} while sending"))?;
        let response = connection.try_response().map_err(|error| format!("{error} instead of a response"))?;
        let response = response.ok_or("the end of the connection instead of a response")?;
        assert_eq!(response.status, 200, "{response:?}");
        responses.fetch_add(1, Relaxed);
    }
    Ok(())
}

#[test]
fn no_request_fails_while_processes_change_under_load() {
    const CLIENTS: usize = 32;
    const CHANGES: usize = 4;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let start = || -> Running {
        let mut running = with_socket(&socket).env("ANIMAL_STORE_LOG__REQUESTS", "errors").start();
        running.address();
        running
    };
    let (end, responses) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let mut running = start();
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| send_requests(address, &end, &responses))).collect();
        for _ in 0..CHANGES {
            let before = responses.load(Relaxed);
            wait_until(|| responses.load(Relaxed) > before + 1000);
            running.terminate().assert_success();
            running = start();
        }
        end.store(true, Relaxed);
        let failures: Vec<_> =
            clients.into_iter().filter_map(|client| client.join().expect("no panic").err()).collect();
        assert_eq!(failures, Vec::<String>::new(), "after {} responses", responses.load(Relaxed));
    });
}
