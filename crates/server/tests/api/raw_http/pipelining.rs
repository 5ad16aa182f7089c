//! Several requests on a connection before the first is answered.

use crate::{
    raw_connection::{RawConnection, RawResponse},
    raw_requests::{animal, fields, get, names, post, post_head, smuggled},
    test_app::TestApp,
};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send([get("/v1/pets"), post("Ada"), get("/v1/pets/0"), post("Ben"), get("/v1/pets")].concat());

    let responses: Vec<_> = (0..5).map(|_| connection.response()).collect();
    assert_eq!(responses.iter().map(|response| response.status).collect::<Vec<_>>(), [200, 201, 404, 201, 200]);
    assert_eq!(responses[0].json(), serde_json::json!([]));
    assert_eq!(responses[1].json()["name"], "Ada");
    assert_eq!(responses[3].json()["name"], "Ben");
    assert_eq!(responses[4].json(), serde_json::json!([responses[1].json(), responses[3].json()]));
    assert!(!responses.iter().any(RawResponse::closes), "{responses:?}");
}

#[test]
fn a_hundred_requests_in_one_write_are_all_answered() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let expected: Vec<_> = (0..50).map(|number| format!("Rex {number}")).collect();

    connection.send(expected.iter().map(|name| post(name) + &get("/v1/pets?limit=1")).collect::<String>());

    for name in &expected {
        let (added, list) = (connection.response(), connection.response());
        assert_eq!((added.status, list.status), (201, 200));
        assert_eq!(added.json()["name"], name.as_str());
    }
    assert_eq!(names(&app), expected);
}

#[test]
fn pipelined_bodies_may_be_split_over_writes() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let requests = [post("Ada"), post("Ben"), get("/v1/pets"), post("Cid")].concat();

    // Each piece ends in the middle of something else.
    for piece in requests.as_bytes().chunks(97) {
        connection.send(piece);
    }

    let statuses: Vec<_> = (0..4).map(|_| connection.response().status).collect();
    assert_eq!(statuses, [201, 201, 200, 201]);
    assert_eq!(names(&app), ["Ada", "Ben", "Cid"]);
}

#[test]
fn a_request_is_answered_while_the_body_of_the_next_is_still_on_its_way() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let next = post("Ben");
    let (sent, rest) = next.split_at(next.len() - 10);

    connection.send(post("Ada") + sent);
    let first = connection.response();
    connection.send(rest);
    let second = connection.response();

    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(names(&app), ["Ada", "Ben"]);
    // A client that was told of the end would not wait for the second answer, nor know of its animal.
    assert!(!first.closes(), "{first:?}");
}

#[test]
fn a_head_request_that_follows_does_not_take_the_body_of_the_answer_before_it() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let head = get("/v1/pets").replacen("GET", "HEAD", 1);

    connection.send(post("Ada") + &head + &get("/v1/pets/0"));

    let added = connection.response();
    assert_eq!((added.status, &added.json()["name"]), (201, &"Ada".into()));
    assert_eq!(connection.response_to_head().status, 200);
    connection.response().assert_error(404, "pet_not_found");
}

#[test]
fn what_follows_a_chunked_body_waits_as_well() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let head = get("/v1/pets").replacen("GET", "HEAD", 1);
    let requests = post_chunked("", "Ada") + &head + &post_chunked("", "Ben") + &get("/v1/pets/0");

    // Cut at every place, so that each end is found wherever it comes to lie.
    for piece in requests.as_bytes().chunks(7) {
        connection.send(piece);
    }

    assert_eq!(connection.response().json()["name"], "Ada");
    assert_eq!(connection.response_to_head().status, 200);
    assert_eq!(connection.response().json()["name"], "Ben");
    connection.response().assert_error(404, "pet_not_found");
    assert_eq!(names(&app), ["Ada", "Ben"]);
}

#[test]
fn a_chunked_body_that_was_answered_early_does_not_end_the_connection() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let refused = post_chunked("Content-Encoding: gzip\r\n", "Ada");

    connection.send(refused.clone() + &refused + &post("Ben"));

    connection.response().assert_error(415, "unsupported_media_type");
    connection.response().assert_error(415, "unsupported_media_type");
    assert_eq!(connection.response().status, 201);
    assert_eq!(names(&app), ["Ben"]);
}

#[test]
fn a_request_that_follows_does_not_change_the_version_of_the_answer_before_it() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(post("Ada") + &format!("GET /v1/pets HTTP/1.0\r\n{}\r\n", fields()));

    let responses = connection.responses_to_end();
    assert_eq!(responses.iter().map(|response| response.status).collect::<Vec<_>>(), [201, 200]);
    assert!(responses[0].head.starts_with("HTTP/1.1 "), "{responses:?}");
    assert!(!responses[0].closes(), "{responses:?}");
}

#[test]
fn a_connection_is_closed_where_the_client_asks_for_it() {
    let app = TestApp::start();
    for request in [get("/v1/pets"), get("/v1/pets/0"), post("Ada")] {
        for option in ["close", "Close", "keep-alive, close", "close, upgrade"] {
            let mut connection = RawConnection::open(app.address);
            connection.send(request.replacen("\r\n", &format!("\r\nConnection: {option}\r\n"), 1));
            assert!(connection.response().closes(), "{option}");
            connection.assert_closed();
        }
    }
}

#[test]
fn nothing_is_answered_after_a_request_that_asks_for_the_connection_to_be_closed() {
    let app = TestApp::start();
    let closing_get = get("/v1/pets").replacen("\r\n", "\r\nConnection: close\r\n", 1);

    assert_only_the_first_is_answered(&app, &(closing_get + &smuggled()), 200);

    assert_eq!(names(&app), Vec::<String>::new());
}

#[test]
fn nothing_is_answered_after_a_request_with_a_body_that_asks_for_the_connection_to_be_closed() {
    let app = TestApp::start();
    let closing_post = post("Ada").replacen("\r\n", "\r\nConnection: close\r\n", 1);

    assert_only_the_first_is_answered(&app, &(closing_post + &smuggled()), 201);

    assert_eq!(names(&app), ["Ada"]);
}

#[test]
fn nothing_is_answered_after_a_chunked_request_that_asks_for_the_connection_to_be_closed() {
    let app = TestApp::start();

    assert_only_the_first_is_answered(&app, &(post_chunked("Connection: close\r\n", "Ada") + &smuggled()), 201);

    assert_eq!(names(&app), ["Ada"]);
}

#[test]
fn garbage_after_a_request_does_not_spoil_its_answer() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(post("Ada") + "\0\0\0\r\n\r\n" + &smuggled());

    let statuses: Vec<_> = connection.responses_to_end().iter().map(|response| response.status).collect();
    assert_eq!(statuses, [201, 400]);
    assert_eq!(names(&app), ["Ada"]);
}

#[test]
fn empty_lines_between_requests_are_skipped() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(format!("\r\n{}\r\n\r\n{}", post("Ada"), get("/v1/pets")));

    assert_eq!(connection.response().status, 201);
    assert_eq!(connection.response().status, 200);
}

#[test]
fn a_client_that_sends_no_more_still_gets_every_answer() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let body = animal("Ben");

    connection.send(post("Ada") + &post_head(&format!("Content-Length: {}\r\n", body.len())) + &body);
    connection.finish_sending();

    let statuses: Vec<_> = connection.responses_to_end().iter().map(|response| response.status).collect();
    assert_eq!(statuses, [201, 201]);
}

/// POST of an animal in chunks, with an extension and a trailer.
fn post_chunked(lines: &str, name: &str) -> String {
    let body = animal(name);
    let (left, right) = body.split_at(9);
    let chunk = |text: &str| format!("{:x};extension=\"a;b\"\r\n{text}\r\n", text.len());
    let head = post_head(&format!("{lines}Transfer-Encoding: chunked\r\n"));
    format!("{head}{}{}0\r\nTrailer: x\r\n\r\n", chunk(left), chunk(right))
}

#[track_caller]
fn assert_only_the_first_is_answered(app: &TestApp, requests: &str, status: u16) {
    let mut connection = RawConnection::open(app.address);
    connection.send(requests);
    connection.finish_sending();
    let responses = connection.responses_to_end();
    let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [status]);
    assert!(responses[0].closes(), "{responses:?}");
}
