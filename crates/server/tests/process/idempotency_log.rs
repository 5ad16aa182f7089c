//! What the log says of a create with an idempotency key: its digest, and never what the client calls it.

use animal_store_test_servers::{FaultProxy, PgDatabase};
use serde_json::Value;

use crate::{
    idempotency::keyed_create,
    postgres::over,
    program::{Ended, Program, TOKEN, get, read_to_end, send},
};

/// SHA-256 of `order-1`.
const DIGEST: &str = "0bafe22156d2698c143b86040446d366ead863ba600d5c924f3d15c786ef4057";

/// In every key of these tests, as it is or as a quoted string has it.
const SECRET: &str = r#"nobody-s"business"#;
const QUOTED_SECRET: &str = r#"nobody-s\"business"#;
/// As PostgreSQL writes bytes.
const HEX: &str = "6e6f626f64792d7322627573696e657373";

/// The lines of requests, in their order.
fn requests(ended: &Ended) -> Vec<Value> {
    let events = ended.stdout.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.filter(|event| event["message"] == "request").collect()
}

/// Neither as text, nor as the list of its bytes that a debugging driver writes.
#[track_caller]
fn assert_unseen(ended: &Ended) {
    let bytes = format!("{:?}", SECRET.as_bytes());
    let bytes = bytes.trim_matches(['[', ']']);
    for line in ended.stdout.iter().chain(&ended.stderr) {
        // The quotation mark may be escaped, once or twice.
        assert!(!line.contains("nobody-s") && !line.contains(bytes), "{line}");
        assert!(!line.contains(HEX), "{line}");
    }
}

#[test]
fn the_line_of_a_request_has_the_digest_of_its_key_and_says_whether_it_was_a_replay() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let steps = [
        (keyed_create(TOKEN, "order-1", "Rex"), 201, Some(DIGEST), false),
        (keyed_create(TOKEN, "order-1", "Rex"), 201, Some(DIGEST), true),
        (keyed_create(TOKEN, "\"order-1\"", "Rex"), 201, Some(DIGEST), true),
        (keyed_create(TOKEN, "order-1", "Tom"), 422, Some(DIGEST), false),
        (keyed_create(TOKEN, "order-1", ""), 400, Some(DIGEST), false),
        (keyed_create(TOKEN, "order 1", "Rex"), 400, None, false),
        (keyed_create(TOKEN, "order-1", "Rex").replace("Idempotency-Key", "X-Key"), 201, None, false),
    ];
    for (request, _, _, _) in &steps {
        read_to_end(send(address, request));
    }
    running.signal("TERM");

    let lines = requests(&running.wait());

    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    for (line, (_, status, digest, replayed)) in lines.iter().zip(steps) {
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line.get("idempotency_key").map(|key| key.as_str().expect("a text")), digest);
        assert_eq!(line.get("replayed"), replayed.then_some(&Value::Bool(true)), "{line}");
    }
}

/// Creates that end in every way that a key has to do with, and heads that are refused for what is beside it.
fn send_all(address: std::net::SocketAddr) {
    for (key, name, status) in [
        (SECRET.to_owned(), "Rex", 201),
        (SECRET.to_owned(), "Rex", 201),
        (format!("\"{QUOTED_SECRET}\""), "Rex", 201),
        (SECRET.to_owned(), "Tom", 422),
        (SECRET.to_owned(), "", 400),
        (format!("{SECRET} {SECRET}"), "Rex", 400),
        (format!("{SECRET}\u{e9}"), "Rex", 400),
        (format!("\"{SECRET}\""), "Rex", 400),
        (format!("\"{QUOTED_SECRET}\";{QUOTED_SECRET}"), "Rex", 400),
        (SECRET.repeat(20), "Rex", 400),
        (format!("{SECRET}\r\nIdempotency-Key: {SECRET}"), "Rex", 400),
        (format!("{SECRET}\r\nContent-Length: -1"), "Rex", 400),
        (format!("{SECRET}\r\nHost: b"), "Rex", 400),
        (format!("{SECRET}\r\n {SECRET}"), "Rex", 400),
        (format!("{SECRET}\0"), "Rex", 400),
        (format!("{SECRET}\r\nX-{SECRET}: x"), "Rex", 400),
    ] {
        let answer = read_to_end(send(address, &keyed_create(TOKEN, &key, name)));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{key:?}: {answer}");
        assert!(!answer.contains("nobody"), "{answer}");
    }
}

#[test]
fn no_key_is_in_the_log_whatever_the_filter_is() {
    for filter in ["debug", "trace"] {
        let database = PgDatabase::new();
        let port = database.sql("SELECT inet_server_port()").parse().expect("a port");
        let mut proxy = FaultProxy::to(port);
        let url = format!("postgres://postgres@{}/{}", proxy.address(), database.name());
        let mut running = over(&url).env("ANIMAL_STORE_LOG__FILTER", filter).start();
        let (address, management) = (running.address(), running.management_address());
        send_all(address);
        // PostgreSQL tells of what it refuses, values and all.
        database.sql("ALTER TABLE idempotency_keys ADD CHECK (pet_id < 0) NOT VALID");
        let refused = read_to_end(send(address, &keyed_create(TOKEN, &format!("{SECRET}-2"), "Rex")));
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        // Every connection is open by then, and none of them answers.
        assert!(get(management, "/ready", "").starts_with("HTTP/1.1 200 "));
        proxy.freeze();
        let unknown = read_to_end(send(address, &keyed_create(TOKEN, &format!("{SECRET}-3"), "Rex")));
        assert!(unknown.contains("\"outcome_unknown\""), "{unknown}");
        proxy.heal();
        running.signal("TERM");

        let ended = running.wait();

        let level = filter.to_uppercase();
        assert!(ended.stdout.iter().any(|line| line.contains(&format!("\"{level}\""))), "the filter does nothing");
        assert_unseen(&ended);
        let failed: Vec<_> = requests(&ended).into_iter().filter(|line| line["status"] == 503).collect();
        let digests: Vec<_> = failed.iter().map(|line| line["idempotency_key"].as_str().expect("a digest")).collect();
        let expected = ["-2", "-3"].map(|end| database.sql(&format!("SELECT encode(sha256('{SECRET}{end}'), 'hex')")));
        assert_eq!(digests, expected, "{failed:#?}");
    }
}
