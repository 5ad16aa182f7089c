//! `Expect: 100-continue`: the client sends its body after the status 100.

use crate::{
    raw_requests::{assert_ends, assert_no_pet, get, names, pet, post_head},
    test_app::TestApp,
};

fn expecting(length: usize) -> String {
    post_head(&format!(
        "Content-Length: {length}\r\nExpect: 100-continue\r\n"
    ))
}

#[test]
fn a_client_gets_a_100_and_one_final_response_whether_it_waits_or_not() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");

    for _ in 0..2 {
        connection.send(expecting(body.len()));
        connection.response().assert_status(100);
        connection.send(&body);
        connection.response().assert_status(201);
    }
    connection.send(expecting(body.len()) + &body + &get("/v1/pets/0"));
    let statuses = [(); 3].map(|()| connection.response().status);
    assert_eq!(statuses, [100, 201, 404]);
    assert_eq!(names(&app), ["Rex"; 3]);
}

#[test]
fn a_refused_client_gets_no_100_and_smuggles_nothing_by_withholding_its_body() {
    let app = TestApp::start();
    let unknown = expecting(30).replacen("Bearer ", "Bearer un", 1);
    for (head, status) in [(unknown, 401), (expecting(1 << 20), 413)] {
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
    let unknown = |value| {
        post_head(&format!(
            "Content-Length: {}\r\nExpect: {value}\r\n",
            body.len()
        ))
    };
    for head in [
        unknown("nothing"),
        unknown("100-continues"),
        unknown(""),
        unknown("\"100-continue\""),
        expecting(body.len()).replacen("HTTP/1.1", "HTTP/1.0", 1),
    ] {
        app.send(head + &body).response().assert_status(201);
    }
}
