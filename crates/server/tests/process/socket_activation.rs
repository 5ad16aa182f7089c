//! A listening socket that a service manager keeps and passes to each process (`LISTEN_FDS`).

use std::{
    net::{TcpListener, TcpStream, UdpSocket},
    os::{fd::OwnedFd, unix::net::UnixListener},
    time::Duration,
};

use animal_store_test_servers::HttpClient;
use tempfile::TempDir;

use crate::{
    pets::status,
    program::{Program, TOKEN},
};

/// Passes this socket to the program as one of this number of sockets, all of them the same, as systemd does.
fn with_sockets(program: Program, socket: impl Into<OwnedFd>, count: usize) -> Program {
    let script = r#"exec 3<&0 4<&0 </dev/null; export LISTEN_PID=$$; exec "$@""#;
    program
        .env("LISTEN_FDS", &count.to_string())
        .run_by_shell(script)
        .standard_input(socket)
}

/// A program with the default drain delay, which gets a duplicate of this socket.
fn with_socket(listener: &TcpListener) -> Program {
    let program = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY", "");
    with_sockets(program, listener.try_clone().expect("a duplicate"), 1)
}

#[test]
fn another_number_or_kind_of_sockets_is_an_error() {
    let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
    let not_connected = TcpStream::connect(tcp().local_addr().unwrap()).unwrap();
    let folder = TempDir::new().unwrap();
    let with_path = UnixListener::bind(folder.path().join("http.sock")).unwrap();
    for (socket, count, message) in [
        (OwnedFd::from(tcp()), 2, "passed 2 sockets"),
        (
            UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            1,
            "no listening TCP socket",
        ),
        (with_path.into(), 1, "no listening TCP socket"),
        (
            tempfile::tempfile().unwrap().into(),
            1,
            "no listening TCP socket",
        ),
        (not_connected.into(), 1, "does not listen"),
    ] {
        with_sockets(Program::with_key(), socket, count)
            .run()
            .assert_error(1, &[message, "LISTEN_FDS"]);
    }
}

#[test]
fn a_socket_is_served_in_place_of_the_configured_address_and_passed_on_without_a_drain_delay() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut first = with_socket(&socket)
        .env(
            "ANIMAL_STORE_HTTP__LISTEN",
            &taken.local_addr().unwrap().to_string(),
        )
        .start();
    let event = first.wait_for_event("listening");
    assert_eq!(
        (&event["inherited"], &event["address"]),
        (&true.into(), &address.to_string().into()),
        "{event}"
    );
    assert_eq!(status(address, TOKEN), 200);
    let events = first.terminate().assert_success().events();

    let time = |message: &str| {
        let event = events
            .iter()
            .find(|event| event["message"] == message)
            .expect("an event");
        humantime::parse_rfc3339(event["timestamp"].as_str().expect("a text")).expect("RFC 3339")
    };
    let end = time("all requests were completed")
        .duration_since(time("shutting down"))
        .expect("it is later");
    assert!(
        end < Duration::from_secs(5),
        "the default for another socket: {end:?}"
    );

    // A connection that waits between two processes is served by the second.
    let mut waiting = HttpClient::new(address)
        .with_token(TOKEN)
        .request("GET", "/v1/pets")
        .begin()
        .unwrap();
    let _second = with_socket(&socket).start();
    assert_eq!(waiting.response().status, 200);
}
