//! One row of each table of invalid values, and the bounds of a body. The unit tests of `adapters-http` own the tables.

use crate::prelude::*;

#[test]
fn every_invalid_member_or_parameter_is_named_in_one_response() {
    let app = TestApp::start();
    let refused = app.post(r#"{"status":null,"categoryId":"7","name":" "}"#);
    assert_eq!(
        refused.assert_error(400, "invalid_body"),
        "name must not be blank; categoryId must be a 64-bit integer; status must be one of available, pending, sold, \
         or left out"
    );
    let refused = app.get("/v1/pets?cursor=x&status=x&limit=101");
    assert_eq!(
        refused.assert_error(400, "invalid_query"),
        "limit must be a whole number from 1 to 100; status must be one of available, pending, sold; \
         cursor must be taken from a next link"
    );
    app.post("{").assert_error(400, "invalid_body");
    assert_no_pet(&app);
}

#[test]
fn the_refusal_of_a_coding_names_the_accepted_one() {
    let app = TestApp::start();
    let create = app.request("POST", "/v1/pets").json(PET);
    let refused = create.header("Content-Encoding", "gzip").send();
    refused
        .assert_header("Accept-Encoding", Some("identity"))
        .assert_error(415, "unsupported_media_type");
}

#[test]
fn a_body_has_at_most_the_configured_number_of_bytes() {
    let pet_of = |bytes: usize| format!("{PET}{}", " ".repeat(bytes - PET.len()));
    for (keys, max) in [(&[][..], 16_384), (&[("http.max_body_bytes", "100")], 100)] {
        let app = TestApp::start_with(keys);
        for (bytes, status) in [(max, 201), (max + 1, 413)] {
            app.post(pet_of(bytes)).assert_status(status);
            let create = app.request("POST", "/v1/pets");
            let create = create.header("Content-Type", "application/json");
            create.chunked(pet_of(bytes)).send().assert_status(status);
        }
    }
}

#[test]
fn the_idempotency_key_is_read_from_its_header_without_white_space_around_it() {
    let app = TestApp::start();
    let create = |key: &str| {
        let line = format!("Idempotency-Key:{key}\r\n");
        app.send(with_lines(&post("Rex"), &line)).response()
    };

    create("a b").assert_error(400, "invalid_header");
    create("").assert_error(400, "invalid_header");
    assert_no_pet(&app);
    // RFC 9110, section 5.5.
    for (key, replayed) in [
        ("a", None),
        (" \t a\t ", Some("true")),
        ("\t\"a\" \t", Some("true")),
    ] {
        create(key)
            .assert_status(201)
            .assert_header("Idempotency-Replayed", replayed);
    }
}
