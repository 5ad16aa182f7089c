//! `animal-store health`: exit codes, and the line of a failure.

use std::net::TcpListener;

use crate::program::{Exited, Program};

const LISTEN: &str = "ANIMAL_STORE_MANAGEMENT__LISTEN";

/// Without arguments, the timeout is one that does not pass on a busy machine.
fn health(listen: &str, args: &[&str]) -> Exited {
    let args = if args.is_empty() {
        &["--timeout", "15s"]
    } else {
        args
    };
    Program::new()
        .env(LISTEN, listen)
        .args(&["health"])
        .args(args)
        .run()
}

#[test]
fn only_a_ready_instance_is_a_success() {
    let mut running = Program::with_key().start();
    let port = running.management_address().port();
    // The listener has only an IPv4 address.
    for listen in [format!("127.0.0.1:{port}"), format!("[::]:{port}")] {
        let body = r#"{"status":"ready","checks":{"storage":"ready","keys":"ready"}}"#;
        assert_eq!(
            health(&listen, &[]).assert_success().output(),
            body,
            "{listen}"
        );
    }
    let mut running = Program::with_redis_url("redis://127.0.0.1:1").start();
    let address = running.management_address().to_string();
    let checks = r#"{"storage":"ready","keys":"unavailable"}"#;
    let error =
        format!("animal-store: not ready: {{\"status\":\"unavailable\",\"checks\":{checks}}}");
    health(&address, &[]).assert_error(1, &[&error]);
}

#[test]
fn a_server_that_cannot_be_reached_or_does_not_respond_is_a_failure() {
    health("127.0.0.1:1", &[])
        .assert_error(1, &["no response from 127.0.0.1:1: Connection refused"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    health(&address, &["--timeout", "300ms"]).assert_error(1, &["within 300ms"]);
    health("127.0.0.1:1", &["--timeout", "61s"])
        .assert_refused(2, &["'61s'", "a duration from 1ms to 1m"]);
    for listen in ["", "127.0.0.1:0"] {
        health(listen, &[]).assert_error(2, &["management.listen has no fixed port"]);
    }
}
