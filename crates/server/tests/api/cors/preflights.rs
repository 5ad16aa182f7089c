//! Preflights: requests of a browser that precede the request of a page.

use animal_store_test_servers::{Request, Response};

use super::{DEVELOPER, FOREIGN, SHOP, VARY, app, app_for, assert_no_cors_headers, preflight};
use crate::{
    raw_requests::{assert_nothing_smuggled, smuggled},
    test_app::TestApp,
};

const PATHS: [&str; 5] = ["/v1/pets?limit=0", "/v1/pets/no-id", "/v1/nowhere", "/docs", "/x/%FF"];

/// Asserts that the response allows a page of this origin to send its request.
#[track_caller]
fn assert_allowed(response: &Response, origin: &str) {
    assert_preflight_response(response);
    response.assert_header("Access-Control-Allow-Origin", Some(origin));
    assert_eq!(response.items("Access-Control-Allow-Methods"), ["get", "head", "post"]);
    let headers = ["authorization", "content-type", "idempotency-key", "x-request-id"];
    assert_eq!(response.items("Access-Control-Allow-Headers"), headers);
    response.assert_header("Access-Control-Max-Age", Some("3600"));
    response.assert_header("Access-Control-Allow-Credentials", None);
}

/// Asserts that the response is not an error and allows no page to send its request.
#[track_caller]
fn assert_refused(response: &Response) {
    assert_preflight_response(response);
    assert_no_cors_headers(response);
    response.assert_header("Content-Type", None);
}

#[track_caller]
fn assert_preflight_response(response: &Response) {
    assert!((200..300).contains(&response.status), "{response:?}");
    assert!(response.body.is_empty(), "{response:?}");
    response.assert_header("X-Content-Type-Options", Some("nosniff"));
    assert!(response.header("X-Request-Id").is_some(), "{response:?}");
    assert_eq!(response.items("Vary"), VARY);
}

fn preflight_for(app: &TestApp, method: &str, headers: Option<&str>) -> Request {
    let request = app.anonymous("OPTIONS", "/v1/pets").header("Origin", SHOP);
    let request = request.header("Access-Control-Request-Method", method);
    headers.into_iter().fold(request, |request, names| request.header("Access-Control-Request-Headers", names))
}

#[test]
fn a_preflight_of_an_allowed_origin_needs_no_key_on_any_path() {
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
fn a_preflight_allows_every_method_and_every_header_of_the_interface() {
    let app = app();

    for method in ["GET", "HEAD", "POST"] {
        for headers in [
            None,
            Some("idempotency-key"),
            Some("authorization,content-type,idempotency-key,x-request-id"),
            Some("X-Request-Id ,\tAuthorization, CONTENT-TYPE"),
        ] {
            assert_allowed(&preflight_for(&app, method, headers).send(), SHOP);
        }
    }
}

#[test]
fn a_preflight_for_another_method_or_header_is_refused() {
    let app = app();

    for method in ["PUT", "DELETE", "OPTIONS", "get", "*", "GETX"] {
        assert_refused(&preflight_for(&app, method, Some("authorization")).send());
    }
    for headers in ["x-other", "authorization,x-other", "authorization;content-type", "cookie", "*", "\u{e9}"] {
        assert_refused(&preflight_for(&app, "POST", Some(headers)).send());
    }
}

#[test]
fn a_preflight_of_another_origin_or_of_none_is_refused_on_any_path() {
    let app = app();

    for path in PATHS {
        assert_refused(&preflight(&app, path, FOREIGN).send());
        let without = app.anonymous("OPTIONS", path).header("Access-Control-Request-Method", "GET");
        assert_refused(&without.send());
        let with_key = app.request("OPTIONS", path).header("Access-Control-Request-Method", "GET");
        assert_refused(&with_key.header("Origin", FOREIGN).send());
    }
    assert_refused(&preflight(&app, "/v1/pets", "https://shop.ex\u{e4}mple").send());
}

#[test]
fn options_without_a_valid_method_is_an_ordinary_request() {
    let app = app();

    for method in [None, Some(""), Some("G T"), Some("GET,POST"), Some("GET\tPOST"), Some("(GET)")] {
        for (request, status, code) in [
            (app.anonymous("OPTIONS", "/v1/pets"), 401, "missing_api_key"),
            (app.request("OPTIONS", "/v1/pets"), 405, "method_not_allowed"),
            (app.request("OPTIONS", "/v1/nowhere"), 404, "route_not_found"),
            (app.anonymous("OPTIONS", "/nowhere"), 404, "route_not_found"),
        ] {
            let request = request.header("Origin", SHOP);
            let request =
                method.into_iter().fold(request, |request, name| request.header("Access-Control-Request-Method", name));
            let response = request.send();
            response.assert_error(status, code);
            // A page may read the error, but the browser does not send the page's request.
            response.assert_header("Access-Control-Allow-Origin", Some(SHOP));
            response.assert_header("Access-Control-Allow-Methods", None);
        }
    }
}

#[test]
fn only_options_is_a_preflight() {
    let app = app();

    for method in ["GET", "POST", "options"] {
        let request = app.anonymous(method, "/v1/pets").header("Origin", SHOP);
        let response = request.header("Access-Control-Request-Method", "GET").send();
        response.assert_status(401).assert_header("Access-Control-Allow-Methods", None);
    }
}

#[test]
fn the_star_allows_the_preflight_of_every_origin() {
    let app = app_for("*");

    for path in PATHS {
        for origin in [SHOP, "null", "chrome-extension://abcdefgh"] {
            assert_allowed(&preflight(&app, path, origin).send(), "*");
        }
    }
    assert_refused(&preflight_for(&app, "DELETE", None).send());
}

#[test]
fn the_body_of_a_preflight_is_not_a_request() {
    let app = app();
    for origin in [SHOP, FOREIGN] {
        let body = smuggled();
        let mut connection = app.send(format!(
            "OPTIONS /v1/pets HTTP/1.1\r\nHost: store.example\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let response = connection.response();
        response.assert_status(200);
        assert_nothing_smuggled(&app, &mut connection, &response);
    }
}
