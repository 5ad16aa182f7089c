//! What browsers ask before they let a page send a request.

use super::{DEVELOPER, FOREIGN, SHOP, VARIES, app, app_for, preflight};
use crate::{
    client::{Request, Response},
    raw_connection::RawConnection,
    raw_requests::{assert_no_animal, begin_post, get, smuggled},
    test_app::TestApp,
};

const PATHS: [&str; 9] =
    ["/v1/pets", "/v1/pets?limit=0", "/v1/pets/1", "/v1/pets/no-id", "/v1/nowhere", "/nowhere", "/docs", "/x/%FF", "/"];

/// The answer that lets a page of this origin go on.
#[track_caller]
fn assert_allowed(response: &Response, origin: &str) {
    assert!((200..300).contains(&response.status), "{response:?}");
    assert!(response.body.is_empty(), "{response:?}");
    response.assert_header("Access-Control-Allow-Origin", Some(origin));
    assert_eq!(response.items("Access-Control-Allow-Methods"), ["get", "head", "post"]);
    let headers = ["authorization", "content-type", "idempotency-key", "x-request-id"];
    assert_eq!(response.items("Access-Control-Allow-Headers"), headers);
    response.assert_header("Access-Control-Max-Age", Some("3600"));
    response.assert_header("Access-Control-Allow-Credentials", None);
    response.assert_header("X-Content-Type-Options", Some("nosniff"));
    assert!(response.header("X-Request-Id").is_some(), "{response:?}");
    assert_eq!(response.items("Vary"), VARIES);
}

/// An answer that is no error and lets nobody go on.
#[track_caller]
fn assert_refused(response: &Response) {
    assert!((200..300).contains(&response.status), "{response:?}");
    assert!(response.body.is_empty(), "{response:?}");
    let names = response.header_names();
    assert!(!names.iter().any(|name| name.starts_with("access-control-")), "{response:?}");
    response.assert_header("Content-Type", None);
    response.assert_header("X-Content-Type-Options", Some("nosniff"));
    assert!(response.header("X-Request-Id").is_some(), "{response:?}");
    assert_eq!(response.items("Vary"), VARIES);
}

fn asks(app: &TestApp, method: &str, headers: Option<&str>) -> Request {
    let request = app.anonymous("OPTIONS", "/v1/pets").header("Origin", SHOP);
    let request = request.header("Access-Control-Request-Method", method);
    headers.into_iter().fold(request, |request, names| request.header("Access-Control-Request-Headers", names))
}

#[test]
fn a_preflight_of_an_allowed_origin_is_answered_without_a_key_whatever_its_path() {
    let app = app();

    for path in PATHS {
        for origin in [SHOP, DEVELOPER] {
            assert_allowed(&preflight(&app, path, origin).send(), origin);
        }
    }
    let wrong = preflight(&app, "/v1/pets", SHOP).header("Authorization", "Basic nonsense").send();
    assert_allowed(&wrong, SHOP);
}

#[test]
fn a_preflight_may_ask_for_every_method_and_every_header_of_the_interface() {
    let app = app();

    for method in ["GET", "HEAD", "POST"] {
        for headers in [
            None,
            Some("authorization"),
            Some("content-type"),
            Some("idempotency-key"),
            Some("x-request-id"),
            Some("authorization,content-type,idempotency-key,x-request-id"),
            Some("X-Request-Id ,\tAuthorization, CONTENT-TYPE"),
        ] {
            assert_allowed(&asks(&app, method, headers).send(), SHOP);
        }
    }
}

#[test]
fn a_preflight_that_asks_for_another_method_or_header_is_refused() {
    let app = app();

    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "Post", "*", "GETX"] {
        assert_refused(&asks(&app, method, Some("authorization")).send());
    }
    for headers in [
        "x-other",
        "authorization,x-other",
        "authorization;content-type",
        "authorization content-type",
        "cookie",
        "*",
        "authorizatio",
        "authorization2",
        "\"authorization\"",
        "<script>",
        "a b",
    ] {
        assert_refused(&asks(&app, "POST", Some(headers)).send());
    }
}

#[test]
fn a_preflight_of_another_origin_or_of_none_is_refused_whatever_its_path() {
    let app = app();

    for path in PATHS {
        assert_refused(&preflight(&app, path, FOREIGN).send());
        let without = app.anonymous("OPTIONS", path).header("Access-Control-Request-Method", "GET");
        assert_refused(&without.send());
        let with_key = app.request("OPTIONS", path).header("Access-Control-Request-Method", "GET");
        assert_refused(&with_key.header("Origin", FOREIGN).send());
    }
}

#[test]
fn values_that_are_no_text_are_refused() {
    let app = app();

    for lines in [
        "Origin: https://shop.example\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: \u{e9}",
        "Origin: https://shop.ex\u{e4}mple\r\nAccess-Control-Request-Method: GET",
        "Origin: \r\nAccess-Control-Request-Method: GET",
    ] {
        let mut connection = RawConnection::open(app.address);
        connection.send(format!("OPTIONS /v1/pets HTTP/1.1\r\nHost: store.example\r\n{lines}\r\n\r\n"));
        let response = connection.response();
        assert_eq!((response.status, response.header("access-control-allow-origin")), (200, None), "{response:?}");
        assert!(response.body.is_empty(), "{response:?}");
    }
}

#[test]
fn options_without_a_method_to_ask_for_is_a_request_like_any_other() {
    let app = app();
    let no_methods = [None, Some(""), Some("G T"), Some("GET,POST"), Some("GET\tPOST"), Some("(GET)")];

    for method in no_methods {
        let ask = |request: Request| {
            let request = request.header("Origin", SHOP);
            let request =
                method.into_iter().fold(request, |request, name| request.header("Access-Control-Request-Method", name));
            let response = request.send();
            // A page may read why, but an answer that is no success lets no browser go on.
            response.assert_header("Access-Control-Allow-Origin", Some(SHOP));
            response.assert_header("Access-Control-Allow-Methods", None);
            response
        };
        ask(app.anonymous("OPTIONS", "/v1/pets")).assert_error(401, "missing_api_key");
        ask(app.request("OPTIONS", "/v1/pets")).assert_error(405, "method_not_allowed");
        ask(app.request("OPTIONS", "/v1/nowhere")).assert_error(404, "route_not_found");
        ask(app.anonymous("OPTIONS", "/nowhere")).assert_error(404, "route_not_found");
    }
}

#[test]
fn only_options_is_a_preflight() {
    let app = app();

    for method in ["GET", "HEAD", "POST", "DELETE", "options"] {
        let request = app.anonymous(method, "/v1/pets").header("Origin", SHOP);
        let response = request.header("Access-Control-Request-Method", "GET").send();
        response.assert_status(401).assert_header("Access-Control-Allow-Methods", None);
    }
}

#[test]
fn preflights_are_answered_however_busy_the_service_is() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1"), ("http.cors_origins", SHOP)]);
    let slow = begin_post(&app, "Content-Length: 30\r\n");

    let refused = app.request("GET", "/v1/pets").header("Origin", SHOP).send();
    refused.assert_header("Access-Control-Allow-Origin", Some(SHOP)).assert_error(503, "overloaded");
    assert_allowed(&preflight(&app, "/v1/pets", SHOP).send(), SHOP);
    assert_refused(&preflight(&app, "/v1/pets", FOREIGN).send());
    drop(slow);
}

#[test]
fn every_origin_is_allowed_where_the_configuration_says_so() {
    let app = app_for("*");

    for path in PATHS {
        for origin in [SHOP, FOREIGN, "null", "chrome-extension://abcdefgh"] {
            assert_allowed(&preflight(&app, path, origin).send(), "*");
        }
    }
    let other = app.anonymous("OPTIONS", "/v1/pets").header("Origin", SHOP);
    assert_refused(&other.header("Access-Control-Request-Method", "DELETE").send());
}

#[test]
fn the_body_of_a_preflight_is_no_request() {
    let app = app();
    for origin in [SHOP, FOREIGN] {
        let body = smuggled();
        let mut connection = RawConnection::open(app.address);
        connection.send(format!(
            "OPTIONS /v1/pets HTTP/1.1\r\nHost: store.example\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let response = connection.response();
        assert_eq!(response.status, 200, "{response:?}");
        if response.closes() {
            connection.finish_sending();
            connection.assert_closed();
        } else {
            connection.send(get("/v1/pets"));
            assert_eq!(connection.response().body, b"[]");
        }
        assert_no_animal(&app);
    }
}
