//! `animal-store health`: exit codes, and the line of a failure.

use crate::prelude::*;

/// A timeout that does not pass on a busy machine.
const LONG: &str = "15s";

fn health(listen: &str, timeout: &str) -> Exited {
    let program = Program::new().set("management.listen", listen);
    program.args("health --timeout").arg(timeout).run()
}

#[test]
fn only_a_ready_instance_is_a_success() {
    let mut running = Program::with_key().start();
    let port = running.management_address().port();
    // The listener has only an IPv4 address.
    for listen in [format!("127.0.0.1:{port}"), format!("[::]:{port}")] {
        let body = r#"{"status":"ready","checks":{"storage":"ready","keys":"ready"}}"#;
        let exited = health(&listen, LONG);
        assert_eq!(exited.assert_success().stdout, [body], "{listen}");
    }
    let mut running = Program::with_redis("redis://127.0.0.1:1").start();
    let address = running.management_address().to_string();
    let body = r#"{"status":"unavailable","checks":{"storage":"ready","keys":"unavailable"}}"#;
    let error = format!("animal-store: not ready: {body}");
    health(&address, LONG).assert_error(1, &[&error]);
}

#[test]
fn a_server_that_cannot_be_reached_or_does_not_respond_is_a_failure() {
    let (_listener, silent) = listen();
    let refused = "no response from 127.0.0.1:1: Connection refused";
    let no_port = "management.listen has no fixed port";
    for (listen, timeout, code, reason) in [
        ("127.0.0.1:1", LONG, 1, refused),
        (&silent.to_string(), "300ms", 1, "within 300ms"),
        ("", LONG, 2, no_port),
        ("127.0.0.1:0", LONG, 2, no_port),
    ] {
        health(listen, timeout).assert_error(code, &[reason]);
    }
    let too_long = health("127.0.0.1:1", "61s");
    too_long.assert_refused(2, &["'--timeout <DURATION>'", "a duration from 1ms to 1m"]);
}
