//! `Expect: 100-continue`: the client sends its body after the status 100.

use crate::{
    raw_requests::{assert_no_pet, get, names, pet, post_head, smuggled},
    test_app::TestApp,
};

fn expecting(length: usize) -> String {
    post_head(&format!("Content-Length: {length}\r\nExpect: 100-continue\r\n"))
}

#[test]
fn a_client_that_waits_gets_a_100() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");

    for _ in 0..2 {
        connection.send(expecting(body.len()));
        connection.response().assert_status(100);
        connection.send(&body);
        connection.response().assert_status(201);
    }
    assert_eq!(names(&app), ["Rex", "Rex"]);
}

#[test]
fn a_client_that_does_not_wait_gets_one_final_response() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");

    connection.send(expecting(body.len()) + &body + &get("/v1/pets/0"));

    let statuses: Vec<_> = (0..3).map(|_| connection.response().status).collect();
    assert_eq!(statuses, [100, 201, 404]);
}

#[test]
fn a_refused_client_smuggles_nothing_by_withholding_its_body() {
    let app = TestApp::start();
    let body = pet("Rex");
    let unknown = expecting(body.len()).replacen("Bearer ", "Bearer un", 1);
    for (head, status) in [(unknown, 401), (expecting(1 << 20), 413)] {
        let mut connection = app.send(head);
        // At once, without a 100.
        let response = connection.response();
        assert_eq!(response.status, status);
        // Peers must agree whether the next bytes are a body or a request: the connection ends.
        assert!(response.closes(), "{response:?}");
        let _ = connection.try_send(smuggled());
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn an_unknown_expectation_is_ignored() {
    let app = TestApp::start();
    let body = pet("Rex");
    for expectation in ["nothing", "100-continues", "", "\"100-continue\""] {
        let mut connection = app.connect();
        let lines = format!("Content-Length: {}\r\nExpect: {expectation}\r\n", body.len());
        connection.send(post_head(&lines) + &body);
        connection.response().assert_status(201);
    }
}

#[test]
fn http_1_0_gets_no_100() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");

    connection.send(expecting(body.len()).replacen("HTTP/1.1", "HTTP/1.0", 1) + &body);

    connection.response().assert_status(201);
    connection.assert_closed();
}
