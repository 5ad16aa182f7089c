//! Several requests on one connection before the first response.

use crate::prelude::*;

#[test]
fn responses_arrive_in_the_order_of_their_requests() {
    let app = TestApp::start();
    let list = get("/v1/pets");
    let unknown = get("/v1/pets/0");
    let requests = [&*list, &post("Ada"), &unknown, &post("Ben"), &list].concat();
    let mut connection = app.send(requests);

    let responses = [(); 5].map(|()| connection.response());
    assert_eq!(statuses(&responses), [200, 201, 404, 201, 200]);
    assert_eq!(responses[0].json(), json!([]));
    let both = json!([responses[1].json(), responses[3].json()]);
    assert_eq!(responses[4].json(), both);
    assert!(!responses.iter().any(Response::closes), "{responses:?}");
}

#[test]
fn a_response_does_not_wait_for_the_body_of_the_next_request() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let next = post("Ben");
    let (sent, rest) = next.split_at(next.len() - 10);

    connection.send(post("Ada") + sent);
    let first = connection.response();
    connection.send(rest);
    let second = connection.response();

    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(names(&app), ["Ada", "Ben"]);
    // After `Connection: close`, the client would not wait for the second response.
    assert!(!first.closes(), "{first:?}");
}

#[test]
fn a_response_has_the_version_of_its_own_request() {
    let app = TestApp::start();
    let old = |lines: &str| with_lines(&get("/v1/pets"), lines).replacen("/1.1", "/1.0", 1);
    // The last one is refused.
    let last = "GET /v1/pets HTTP/1.1\r\n\r\n";
    let requests = [post("Ada"), old("Connection: keep-alive\r\n"), last.into()];
    let responses = app.send(requests.concat()).responses_to_end();
    assert_eq!(statuses(&responses), [201, 200, 400]);
    for (response, version) in responses.iter().zip(["1.1", "1.0", "1.1"]) {
        let start = format!("HTTP/{version} ");
        assert!(response.head.starts_with(&start), "{responses:?}");
    }
    assert!(!responses[0].closes() && responses[2].closes());
}

#[test]
fn a_connection_ends_if_the_client_requests_it_and_no_later_request_is_carried_out() {
    let app = TestApp::start();
    let pet = get("/v1/pets/0");
    let close = "Connection: close\r\n";
    for (closing, status) in [
        (with_lines(&pet, "Connection: Close\r\n"), 404),
        (with_lines(&pet, "Connection: keep-alive, close\r\n"), 404),
        (with_lines(&pet, "Connection: close, upgrade\r\n"), 404),
        (with_lines(&post("Ada"), close), 201),
        (with_lines(&post_chunked("Ada"), close), 201),
    ] {
        let mut connection = app.send(closing + &smuggled());
        let response = connection.response();
        assert_ends(&mut connection, response.assert_status(status));
    }
    assert_eq!(names(&app), ["Ada", "Ada"]);
}

#[test]
fn empty_lines_before_a_request_make_no_request() {
    // RFC 9112, section 2.2.
    let app = TestApp::start();
    let requests = [post("Ada"), get("/v1/pets?limit=1")].join("\r\n\r\n\n");
    let mut connection = app.send("\r\n".to_owned() + &requests);
    let responses = [(); 2].map(|()| connection.response());
    assert_eq!(statuses(&responses), [201, 200]);
}

#[test]
fn a_refused_head_does_not_cut_the_response_before_it() {
    let app = TestApp::start();
    let file = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n";
    for (refused, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        (&format!("GET /{}", "x".repeat(40_000)), 414),
    ] {
        let mut connection = app.send([file, refused, &"z".repeat(64 * 1024)].concat());

        let responses = connection.responses_to_end();

        assert_eq!(statuses(&responses), [200, status]);
        assert!(responses[0].body.len() > 1024 * 1024);
    }
}
