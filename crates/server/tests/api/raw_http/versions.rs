//! Versions of HTTP other than 1.1.

use crate::{
    raw_connection::RawConnection,
    raw_requests::{assert_refused, fields, names, post, smuggled},
    test_app::TestApp,
};

fn get_1_0(connection: &str) -> String {
    // HTTP/1.0 has no Host.
    let authorization = fields().lines().nth(1).expect("two lines").to_owned();
    format!("GET /v1/pets HTTP/1.0\r\n{authorization}\r\n{connection}\r\n")
}

#[test]
fn a_connection_of_http_1_0_ends_with_its_first_answer() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(get_1_0(""));

    assert_eq!(connection.response().status, 200);
    connection.assert_closed();
}

#[test]
fn a_connection_of_http_1_0_is_kept_where_the_client_asks_for_it() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    for _ in 0..3 {
        connection.send(get_1_0("Connection: keep-alive\r\n"));
        let response = connection.response();
        assert_eq!(response.status, 200);
        assert_eq!(response.header("connection"), Some("keep-alive"));
    }
}

#[test]
fn an_animal_can_be_added_by_http_1_0() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(post("Rex").replacen("HTTP/1.1", "HTTP/1.0", 1));

    assert_eq!(connection.response().status, 201);
    connection.assert_closed();
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn what_follows_a_request_of_http_1_0_is_not_answered() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(get_1_0("") + &smuggled());
    connection.finish_sending();

    let statuses: Vec<_> = connection.responses_to_end().iter().map(|response| response.status).collect();
    assert_eq!(statuses, [200]);
    assert_eq!(names(&app), Vec::<String>::new());
}

#[test]
fn other_versions_are_refused() {
    let app = TestApp::start();
    for version in ["HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3", "HTTP/1.1.1", "HTTP/11", "http/1.1", "HTTP/-1", "x"] {
        assert_refused(&app, format!("GET /v1/pets {version}\r\n{}\r\n", fields()), &[400]);
    }
    assert_refused(&app, "GET /v1/pets\r\n", &[400]);
    assert_refused(&app, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[400]);
}
