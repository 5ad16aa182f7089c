//! The log contains the digest of an idempotency key, and never the key.

use crate::prelude::*;

/// Part of every key.
const SECRET: &str = r#"secret-s"business"#;

#[test]
fn the_line_of_a_request_has_the_digest_of_its_key_and_a_replay_flag_and_no_line_has_the_key_even_at_trace()
 {
    let database = PgDatabase::new();
    let program = Program::with_postgres(database.url());
    let mut running = program.set("log.filter", "trace").start();
    let address = running.address();
    let digest = |key: &str| database.sql(&format!("SELECT encode(sha256('{key}'), 'hex')"));
    let create = |key: &str, name| keyed_create_request(address, key, name).send();
    let same = digest(SECRET);
    let expected = [
        json!({"status": 201, "idempotency_key": same, "replayed": null}),
        json!({"status": 201, "idempotency_key": same, "replayed": true}),
        json!({"status": 422, "idempotency_key": same, "replayed": null}),
        json!({"status": 201, "idempotency_key": null}),
    ];
    create(SECRET, "Rex").assert_status(201);
    create(r#""secret-s\"business""#, "Rex").assert_status(201);
    create(SECRET, "Tom").assert_status(422);
    let without_key = create_request(address, "Rex").header("X-Key", "order-1");
    without_key.send().assert_status(201);
    for key in [
        format!("{SECRET} {SECRET}"),
        format!("{SECRET}\r\nIdempotency-Key: {SECRET}"),
        format!("{SECRET}\r\nContent-Length: -1"),
        format!("{SECRET}\0"),
        format!("{SECRET}\r\nX-{SECRET}: x"),
    ] {
        let response = create(&key, "Rex");
        response.assert_status(400);
        assert!(!response.head.contains("secret-s"), "{response:?}");
        assert!(!response.text().contains("secret-s"), "{response:?}");
    }
    // The error message of PostgreSQL contains the values of the refused row.
    database.sql("ALTER TABLE idempotency_keys ADD CHECK (pet_id < 0) NOT VALID");
    let failed = format!("{SECRET}-2");
    create(&failed, "Rex").assert_status(503);

    let exited = running.terminate();
    // The filter has an effect.
    exited.assert_has("TRACE");
    // Not as text, not in hex, not as the list of bytes that the driver logs. The quotation mark may be escaped.
    let bytes = format!("{:?}", SECRET.as_bytes());
    let hex = hex::encode(SECRET);
    for text in ["secret-s", &hex, bytes.trim_matches(['[', ']'])] {
        exited.assert_lacks(text);
    }
    let lines = exited.requests();
    for (line, expected) in lines.iter().zip(&expected) {
        assert_members(line, expected);
    }
    let keys_of = |status| {
        let lines = lines.iter().filter(move |line| line["status"] == status);
        lines.filter_map(|line| line["idempotency_key"].as_str())
    };
    assert_eq!(keys_of(400).count(), 0, "{lines:#?}");
    assert!(keys_of(503).eq([digest(&failed)]), "{lines:#?}");
}
