//! The log contains the digest of an idempotency key, and never the key.

use std::net::SocketAddr;

use animal_store_test_servers::{FaultProxy, HttpClient, PgDatabase};
use serde_json::Value;

use crate::{
    pets::{create_request, keyed_create_request},
    program::{Exited, Program, TOKEN},
};

/// SHA-256 of `order-1`.
const DIGEST: &str = "0bafe22156d2698c143b86040446d366ead863ba600d5c924f3d15c786ef4057";

/// Part of every key of the second test, bare and as in a quoted string.
const SECRET: &str = r#"secret-s"business"#;
const QUOTED_SECRET: &str = r#"secret-s\"business"#;
/// The same as PostgreSQL prints bytes.
const HEX: &str = "7365637265742d7322627573696e657373";

/// Returns the lines of requests in their order.
fn requests(exited: &Exited) -> Vec<Value> {
    exited.events().into_iter().filter(|event| event["message"] == "request").collect()
}

/// Asserts that the key is in no line: not as text, not in hex, not as the list of bytes that the driver logs.
#[track_caller]
fn assert_not_logged(exited: &Exited) {
    let bytes = format!("{:?}", SECRET.as_bytes());
    let bytes = bytes.trim_matches(['[', ']']);
    for line in exited.stdout.iter().chain(&exited.stderr) {
        // The quotation mark may be escaped, once or twice.
        assert!(!line.contains("secret-s") && !line.contains(bytes), "{line}");
        assert!(!line.contains(HEX), "{line}");
    }
}

#[test]
fn the_line_of_a_request_has_the_digest_of_its_key_and_a_replay_flag() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let steps = [
        (keyed_create_request(address, TOKEN, "order-1", "Rex"), 201, Some(DIGEST), false),
        (keyed_create_request(address, TOKEN, "order-1", "Rex"), 201, Some(DIGEST), true),
        (keyed_create_request(address, TOKEN, "\"order-1\"", "Rex"), 201, Some(DIGEST), true),
        (keyed_create_request(address, TOKEN, "order-1", "Tom"), 422, Some(DIGEST), false),
        (keyed_create_request(address, TOKEN, "order 1", "Rex"), 400, None, false),
        (create_request(address, TOKEN, "Rex").header("X-Key", "order-1"), 201, None, false),
    ];
    let expected = steps.map(|(request, status, digest, replayed)| {
        request.send().assert_status(status);
        (status, digest, replayed)
    });

    let lines = requests(&running.terminate());

    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (status, digest, replayed)) in lines.iter().zip(expected) {
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line.get("idempotency_key").map(|key| key.as_str().expect("a text")), digest);
        assert_eq!(line.get("replayed"), replayed.then_some(&Value::Bool(true)), "{line}");
    }
}

/// Sends valid and invalid keys, and valid keys in requests that are refused for another reason.
fn send_all(address: SocketAddr) {
    for (key, name, status) in [
        (SECRET.to_owned(), "Rex", 201),
        (format!("\"{QUOTED_SECRET}\""), "Rex", 201),
        (SECRET.to_owned(), "Tom", 422),
        (format!("{SECRET} {SECRET}"), "Rex", 400),
        (format!("\"{SECRET}\""), "Rex", 400),
        (format!("{SECRET}\r\nIdempotency-Key: {SECRET}"), "Rex", 400),
        (format!("{SECRET}\r\nContent-Length: -1"), "Rex", 400),
        (format!("{SECRET}\r\n {SECRET}"), "Rex", 400),
        (format!("{SECRET}\0"), "Rex", 400),
        (format!("{SECRET}\r\nX-{SECRET}: x"), "Rex", 400),
    ] {
        let response = keyed_create_request(address, TOKEN, &key, name).send();
        assert!(response.head.starts_with(&format!("HTTP/1.1 {status} ")), "{key:?}: {response:?}");
        assert!(!response.head.contains("secret-s") && !response.text().contains("secret-s"), "{response:?}");
    }
}

#[test]
fn no_key_is_logged_even_at_trace() {
    let database = PgDatabase::new();
    let port = database.sql("SELECT inet_server_port()").parse().expect("a port");
    let mut proxy = FaultProxy::to(port);
    let url = format!("postgres://postgres@{}/{}", proxy.address(), database.name());
    let program = Program::with_postgres(&url).env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "5s");
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    let (address, management) = (running.address(), running.management_address());
    send_all(address);
    // The error message of PostgreSQL contains the values of the refused row.
    database.sql("ALTER TABLE idempotency_keys ADD CHECK (pet_id < 0) NOT VALID");
    let refused = keyed_create_request(address, TOKEN, &format!("{SECRET}-2"), "Rex").send();
    assert_eq!(refused.status, 503, "{refused:?}");
    // From then on, every connection is open.
    assert_eq!(HttpClient::new(management).get("/ready").status, 200);
    proxy.freeze();
    let unknown = keyed_create_request(address, TOKEN, &format!("{SECRET}-3"), "Rex").send();
    assert!(unknown.text().contains("\"outcome_unknown\""), "{unknown:?}");
    proxy.heal();

    let exited = running.terminate();

    assert!(exited.events().iter().any(|event| event["level"] == "TRACE"), "the filter has no effect");
    assert_not_logged(&exited);
    let failed: Vec<_> = requests(&exited).into_iter().filter(|line| line["status"] == 503).collect();
    let digests: Vec<_> = failed.iter().map(|line| line["idempotency_key"].as_str().expect("a digest")).collect();
    let expected = ["-2", "-3"].map(|end| database.sql(&format!("SELECT encode(sha256('{SECRET}{end}'), 'hex')")));
    assert_eq!(digests, expected, "{failed:#?}");
}
