//! `Expect: 100-continue`: the client sends its body once it is asked to.

use crate::{
    raw_connection::RawConnection,
    raw_requests::{animal, assert_no_animal, get, names, post_head, smuggled},
    test_app::TestApp,
};

fn expecting(length: usize) -> String {
    post_head(&format!("Content-Length: {length}\r\nExpect: 100-continue\r\n"))
}

#[test]
fn a_client_that_waits_is_told_to_continue() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let body = animal("Rex");

    for _ in 0..2 {
        connection.send(expecting(body.len()));
        assert_eq!(connection.response().status, 100);
        connection.send(&body);
        assert_eq!(connection.response().status, 201);
    }
    assert_eq!(names(&app), ["Rex", "Rex"]);
}

#[test]
fn a_client_that_does_not_wait_is_answered_once() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let body = animal("Rex");

    connection.send(expecting(body.len()) + &body + &get("/v1/pets/0"));

    let statuses: Vec<_> = (0..3).map(|_| connection.response().status).collect();
    assert_eq!(statuses, [100, 201, 404]);
}

#[test]
fn a_client_that_is_refused_does_not_smuggle_by_not_sending_its_body() {
    let app = TestApp::start();
    let body = animal("Rex");
    let unknown = expecting(body.len()).replacen("Bearer ", "Bearer un", 1);
    for (head, status) in [(unknown, 401), (expecting(1 << 20), 413)] {
        let mut connection = RawConnection::open(app.address);
        connection.send(head);
        let mut response = connection.response();
        if response.status == 100 {
            response = connection.response();
        }
        assert_eq!(response.status, status);
        // Whoever takes this for the body and whoever takes it for a request must agree: the connection ends.
        assert!(response.closes(), "{response:?}");
        let _ = connection.try_send(smuggled());
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_animal(&app);
}

#[test]
fn an_expectation_that_nobody_knows_changes_nothing() {
    let app = TestApp::start();
    let body = animal("Rex");
    for expectation in ["nothing", "100-continues", "", "\"100-continue\""] {
        let mut connection = RawConnection::open(app.address);
        let lines = format!("Content-Length: {}\r\nExpect: {expectation}\r\n", body.len());
        connection.send(post_head(&lines) + &body);
        assert_eq!(connection.response().status, 201, "{expectation:?}");
    }
}

#[test]
fn http_1_0_is_not_told_to_continue() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let body = animal("Rex");

    connection.send(expecting(body.len()).replacen("HTTP/1.1", "HTTP/1.0", 1) + &body);

    assert_eq!(connection.response().status, 201);
    connection.assert_closed();
}
