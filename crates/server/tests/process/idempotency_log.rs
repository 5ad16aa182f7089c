//! The log contains the digest of an idempotency key, and never the key.

use animal_store_test_servers::{FaultProxy, HttpClient, PgDatabase};
use serde_json::Value;

use crate::{
    pets::{create_request, keyed_create_request},
    program::{Program, TOKEN},
};

/// Part of every key, bare and as in a quoted string.
const SECRET: &str = r#"secret-s"business"#;
const QUOTED_SECRET: &str = r#"secret-s\"business"#;
/// The same as PostgreSQL prints bytes.
const HEX: &str = "7365637265742d7322627573696e657373";

#[test]
fn the_line_of_a_request_has_the_digest_of_its_key_and_a_replay_flag_and_no_line_has_the_key_even_at_trace()
 {
    let database = PgDatabase::new();
    let port = database
        .sql("SELECT inet_server_port()")
        .parse()
        .expect("a port");
    let mut proxy = FaultProxy::to(port);
    let url = format!(
        "postgres://postgres@{}/{}",
        proxy.address(),
        database.name()
    );
    let program = Program::with_postgres(&url).env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "5s");
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    let (address, management) = (running.address(), running.management_address());
    let digest = |key: &str| database.sql(&format!("SELECT encode(sha256('{key}'), 'hex')"));
    let create = |key: &str, name| keyed_create_request(address, TOKEN, key, name).send();
    let valid = [
        (SECRET.to_owned(), "Rex", 201, false),
        (format!("\"{QUOTED_SECRET}\""), "Rex", 201, true),
        (SECRET.to_owned(), "Tom", 422, false),
    ];
    for (key, name, status, _) in &valid {
        create(key, name).assert_status(*status);
    }
    create_request(address, TOKEN, "Rex")
        .header("X-Key", "order-1")
        .send()
        .assert_status(201);
    for key in [
        format!("{SECRET} {SECRET}"),
        format!("{SECRET}\r\nIdempotency-Key: {SECRET}"),
        format!("{SECRET}\r\nContent-Length: -1"),
        format!("{SECRET}\0"),
        format!("{SECRET}\r\nX-{SECRET}: x"),
    ] {
        let response = create(&key, "Rex");
        assert!(
            response.head.starts_with("HTTP/1.1 400 "),
            "{key:?}: {response:?}"
        );
        assert!(
            !response.head.contains("secret-s") && !response.text().contains("secret-s"),
            "{response:?}"
        );
    }
    // The error message of PostgreSQL contains the values of the refused row.
    database.sql("ALTER TABLE idempotency_keys ADD CHECK (pet_id < 0) NOT VALID");
    create(&format!("{SECRET}-2"), "Rex").assert_status(503);
    // From then on, every connection is open.
    HttpClient::new(management).get("/ready").assert_status(200);
    proxy.freeze();
    assert!(
        create(&format!("{SECRET}-3"), "Rex")
            .text()
            .contains("\"outcome_unknown\"")
    );
    proxy.heal();

    let exited = running.terminate();

    assert!(
        exited
            .events()
            .iter()
            .any(|event| event["level"] == "TRACE"),
        "the filter has no effect"
    );
    // Not as text, not in hex, not as the list of bytes that the driver logs. The quotation mark may be escaped.
    let bytes = format!("{:?}", SECRET.as_bytes());
    for text in ["secret-s", HEX, bytes.trim_matches(['[', ']'])] {
        assert!(!exited.output().contains(text), "{text}: {exited:?}");
    }
    let lines = exited.requests();
    for (line, (.., status, is_replay)) in lines.iter().zip(valid) {
        assert_eq!(
            (&line["status"], &line["idempotency_key"]),
            (&status.into(), &digest(SECRET).into()),
            "{line}"
        );
        assert_eq!(
            line.get("replayed"),
            is_replay.then_some(&Value::Bool(true)),
            "{line}"
        );
    }
    for (status, expected) in [
        (400, vec![]),
        (
            503,
            vec![
                digest(&format!("{SECRET}-2")),
                digest(&format!("{SECRET}-3")),
            ],
        ),
    ] {
        let found = lines
            .iter()
            .filter(|line| line["status"] == status)
            .filter_map(|line| line["idempotency_key"].as_str());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{lines:#?}");
    }
    assert_eq!(lines[3].get("idempotency_key"), None, "{lines:#?}");
}
