//! `Expect: 100-continue`: the client sends its body after the status 100, before its API key is checked.

use crate::prelude::*;

const EXPECTATION: &str = "Expect: 100-continue\r\n";

fn expecting(length: usize) -> String {
    post_head(&format!("Content-Length: {length}\r\n{EXPECTATION}"))
}

#[test]
fn a_client_with_a_body_gets_a_100_and_one_final_response_whether_it_waits_or_not() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");

    let chunked = with_lines(&post_chunked("Rex"), EXPECTATION);
    let (chunked_head, chunks) = chunked.split_once("\r\n\r\n").expect("a body");
    for (head, body) in [
        (expecting(body.len()), &*body),
        (format!("{chunked_head}\r\n\r\n"), chunks),
    ] {
        connection.send(head);
        connection.response().assert_status(100);
        connection.send(body);
        connection.response().assert_status(201);
    }
    connection.send(with_lines(&get("/v1/pets/0"), EXPECTATION));
    connection.response().assert_status(404);
    connection.send(expecting(body.len()) + &body + &get("/v1/pets/0"));
    let statuses = [(); 3].map(|()| connection.response().status);
    assert_eq!(statuses, [100, 201, 404]);
    connection.send(expecting(0));
    connection.response().assert_error(400, "invalid_body");
    assert_eq!(names(&app), ["Rex"; 3]);
}

#[test]
fn a_client_that_will_be_refused_gets_a_100_too_and_its_connection_goes_on() {
    let app = TestApp::start();
    let body = pet("Rex");
    let head = expecting(body.len());
    for (head, status) in [
        (head.replacen("Bearer ", "Bearer un", 1), 401),
        (head.replacen("Authorization", "X-Authorization", 1), 401),
        (head.replacen("/v1/pets", "/v1/nowhere", 1), 404),
        (head.replacen("POST", "PUT", 1), 405),
        (head.replacen("application/json", "text/plain", 1), 415),
        (head.replacen("POST /v1/pets", "GET /v1/pets/0", 1), 404),
    ] {
        let mut connection = app.send(head);
        connection.response().assert_status(100);
        connection.send(&body);
        let response = connection.response();
        response.assert_status(status);
        assert!(!response.closes(), "{response:?}");
        assert_goes_on(&mut connection);
    }
}

#[test]
fn a_body_that_is_declared_too_large_gets_no_100_and_the_application_responds_in_its_order() {
    let app = TestApp::start();
    let head = expecting(16 * 1024 + 1);
    for (head, status) in [
        (head.replacen("Bearer ", "Bearer un", 1), 401),
        (head.replacen("application/json", "text/plain", 1), 415),
        (head, 413),
    ] {
        let mut connection = app.send(head);
        let response = connection.response();
        // Peers must agree whether the next bytes are a body or a request: the connection ends.
        assert_ends(&mut connection, response.assert_status(status));
    }
    assert_no_pet(&app);
}

#[test]
fn an_unknown_expectation_and_one_of_http_1_0_are_ignored() {
    let app = TestApp::start();
    let body = pet("Rex");
    let head = expecting(body.len());
    let mut heads = vec![head.replacen("HTTP/1.1", "HTTP/1.0", 1)];
    for unknown in ["nothing", "100-continues", "", "\"100-continue\""] {
        heads.push(head.replacen("100-continue", unknown, 1));
    }
    for head in heads {
        app.send(head + &body).response().assert_status(201);
    }
}
