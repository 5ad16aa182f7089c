//! Bodies in chunks.

use crate::{
    raw_requests::{assert_no_pet, get, names, pet, post_head, smuggled},
    test_app::TestApp,
};

fn chunked(body: &str) -> String {
    post_head("Transfer-Encoding: chunked\r\n") + body
}

#[test]
fn a_valid_chunked_body_creates_a_pet() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");
    let (left, right) = body.split_at(7);
    let (l, r, all) = (left.len(), right.len(), body.len());
    let valid = [
        format!("{all:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("0000{all:x}\r\n{body}\r\n000\r\n\r\n"),
        format!("{l:x}\r\n{left}\r\n{r:x}\r\n{right}\r\n0\r\n\r\n"),
        format!("{l:x};name=value\r\n{left}\r\n{r:x};a;b=\"c\"\r\n{right}\r\n0;last\r\n\r\n"),
        format!("{all:x} ; name = value\r\n{body}\r\n0\r\n\r\n"),
        format!("{all:x}\r\n{body}\r\n0\r\nTrailer: value\r\n\r\n"),
        // A trailer is neither a header nor a request.
        format!("{all:x}\r\n{body}\r\n0\r\nContent-Length: 99\r\nAuthorization: Bearer none\r\n\r\n"),
    ];

    for body in &valid {
        connection.send(chunked(body) + &get("/v1/pets/0"));
        connection.response().assert_status(201);
        connection.response().assert_error(404, "pet_not_found");
    }

    assert_eq!(names(&app), vec!["Rex"; valid.len()]);
}

#[test]
fn an_invalid_chunk_is_one_400_and_ends_the_connection() {
    let app = TestApp::start();
    let body = pet("Rex");
    let length = body.len();
    for invalid in [
        "zz\r\n".to_owned(),
        format!("-{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!(" {length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("\r\n{body}\r\n0\r\n\r\n"),
        // One digit more than fits in 64 bits.
        format!("10000000000000000\r\n{body}\r\n0\r\n\r\n"),
        // Line ends that are missing or incomplete.
        format!("{length:x}\n{body}\n0\n\n"),
        format!("{length:x}\r{body}\r\n0\r\n\r\n"),
        format!("{length:x}\r\n{body}\n0\r\n\r\n"),
        format!("{length:x}\r\n{body}\r0\r\n\r\n"),
        // More or fewer bytes than the size.
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", length - 1),
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", length + 1),
        format!("{length:x};\0\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x};a\nb\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let mut connection = app.connect();
        let _ = connection.try_send(chunked(&invalid) + &smuggled());

        let responses = connection.responses_to_end();

        assert_eq!(responses.len(), 1, "{invalid:?}: {responses:?}");
        responses[0].assert_error(400, "malformed_request");
        assert!(responses[0].closes(), "{responses:?}");
        assert_no_pet(&app);
    }
}

#[test]
fn an_invalid_chunk_after_an_early_response_is_not_a_second_request() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let head = chunked("").replacen("Authorization: Bearer ", "Authorization: Bearer un", 1);

    connection.send(head + "3\r\nabc\r\n");
    connection.response().assert_error(401, "invalid_api_key");
    connection.send(format!("zz\r\n{}", smuggled()));

    connection.assert_closed();
    assert_no_pet(&app);
}

#[test]
fn the_largest_chunk_size_is_a_413_after_too_many_of_its_bytes() {
    let app = TestApp::start();
    let mut connection = app.send(chunked("ffffffffffffffff\r\n") + &" ".repeat(17 * 1024) + &smuggled());
    let response = connection.response();
    connection.finish_sending();

    response.assert_error(413, "payload_too_large");
    connection.assert_closed();
    assert_no_pet(&app);
}
