//! `animal-store health`: exit codes, and the line of a failure.

use std::{
    io::Write,
    net::{SocketAddr, TcpListener},
    thread,
};

use crate::program::{Exited, Program};

const LISTEN: &str = "ANIMAL_STORE_MANAGEMENT__LISTEN";

/// Without arguments, the timeout is one that does not pass on a busy machine.
fn health(listen: &str, args: &[&str]) -> Exited {
    let args = if args.is_empty() { &["--timeout", "15s"] } else { args };
    Program::new().env(LISTEN, listen).args(&["health"]).args(args).run()
}

/// Asserts the exit code, and that the only output is one line on standard error.
#[track_caller]
fn assert_failure(exited: &Exited, code: i32, text: &str) {
    assert_eq!((exited.code, exited.stdout.len(), exited.stderr.len()), (Some(code), 0, 1), "{exited:?}");
    assert!(exited.stderr[0].contains(text), "{text}: {exited:?}");
}

#[test]
fn a_ready_instance_is_a_success_without_output() {
    let mut running = Program::with_key().start();
    let address = running.management_address();
    for listen in [address, SocketAddr::from(([0, 0, 0, 0], address.port()))] {
        let exited = health(&listen.to_string(), &[]);
        assert_eq!((exited.code, exited.output()), (Some(0), String::new()), "{listen}");
    }
    // The listener has only an IPv4 address.
    let exited = health(&format!("[::]:{}", address.port()), &[]);
    assert_eq!((exited.code, exited.output()), (Some(0), String::new()));
}

#[test]
fn an_instance_that_is_not_ready_is_a_failure_that_names_the_check() {
    let mut running = Program::with_redis_url("redis://127.0.0.1:1").start();
    let address = running.management_address().to_string();
    assert_failure(&health(&address, &[]), 1, "animal-store: not ready: unavailable (keys unavailable)");
}

#[test]
fn an_address_without_a_listener_is_a_failure() {
    assert_failure(&health("127.0.0.1:1", &[]), 1, "no response from 127.0.0.1:1: Connection refused");
}

#[test]
fn a_server_that_does_not_respond_is_a_failure_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    assert_failure(&health(&address, &["--timeout", "300ms"]), 1, "within 300ms");
}

#[test]
fn a_server_that_sends_no_http_is_a_failure() {
    for response in [String::new(), "SSH-2.0-OpenSSH\r\n".to_owned(), "x".repeat(1024 * 1024)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The client may disconnect first.
            let _ = stream.write_all(response.as_bytes());
        });
        let exited = health(&address, &[]);
        assert_eq!(exited.code, Some(1), "{exited:?}");
        server.join().unwrap();
    }
}

#[test]
fn without_a_known_address_the_configuration_is_invalid() {
    assert_failure(&health("", &[]), 2, "management.listen is empty");
    assert_failure(&health("127.0.0.1:0", &[]), 2, "management.listen selects a free port");
    assert_eq!(health("127.0.0.1:1", &["--timeout", "0s"]).code, Some(2));
}
