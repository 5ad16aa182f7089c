//! A listening socket that a service manager keeps and passes to each process (`LISTEN_FDS`).

use std::{
    net::{TcpStream, UdpSocket},
    os::{fd::OwnedFd, unix::net::UnixListener},
};

use crate::prelude::*;

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
    let program = Program::with_key().set("shutdown.drain_delay", "");
    with_sockets(program, listener.try_clone().expect("a duplicate"), 1)
}

#[test]
fn another_number_or_kind_of_sockets_is_an_error() {
    // Its peer is closed at once: bash takes a connected socket for a remote shell.
    let stream = TcpStream::connect(listen().1);
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let folder = new_folder();
    let unix = UnixListener::bind(folder.path().join("http.sock")).expect("a socket");
    let file = tempfile::tempfile().expect("a file");
    let no_socket = "no listening TCP socket";
    for (socket, count, message) in [
        (stream.expect("connected").into(), 1, "does not listen"),
        (OwnedFd::from(listen().0), 2, "passed 2 sockets"),
        (udp.into(), 1, no_socket),
        (unix.into(), 1, no_socket),
        (file.into(), 1, no_socket),
    ] {
        let exited = with_sockets(Program::with_key(), socket, count).run();
        exited.assert_error(1, &[message, "LISTEN_FDS"]);
    }
}

#[test]
fn a_socket_is_served_in_place_of_the_configured_address_and_passed_on_without_a_drain_delay() {
    let (socket, address) = listen();
    let (_listener, taken) = listen();
    // The default drain delay of another socket is five seconds.
    let mut first = with_socket(&socket)
        .set("http.listen", &taken.to_string())
        .start();
    let event = first.wait_for_event("listening");
    assert_members(&event, &json!({"inherited": true, "address": address}));
    assert_eq!(status(address, TOKEN), 200);
    let exited = first.terminate();
    exited.assert_success();
    let time = |message: &str| {
        let events = exited.events_of(message);
        let time = events[0]["timestamp"].as_str().expect("a text");
        humantime::parse_rfc3339(time).expect("RFC 3339")
    };
    let duration = time("all requests were completed").duration_since(time("shutting down"));
    let duration = duration.expect("it is later");
    assert!(duration < Duration::from_secs(5), "{duration:?}");

    // A connection that waits between two processes is served by the second.
    let client = HttpClient::new(address).with_token(TOKEN);
    let mut waiting = client.request("GET", "/v1/pets").begin();
    // `http.listen` is not bound, so that `management.listen` can be the same.
    let shared = SocketAddr::from(([127, 9, 9, 9], taken.port())).to_string();
    let second = with_socket(&socket).set("http.listen", &shared);
    let _second = second.set("management.listen", &shared).start();
    waiting.response().assert_status(200);
}
