//! Which origins are the allowed ones: those that are the same, byte for byte.

use super::{DEVELOPER, SHOP, app, app_for, preflight};
use crate::{client::Response, raw_connection::RawConnection, raw_requests::fields};

/// None of these is one of those that are allowed.
const OTHERS: [&str; 32] = [
    "",
    "*",
    "null",
    "shop.example",
    "//shop.example",
    "http://shop.example",
    "https://shop.example/",
    "https://shop.example/v1",
    "https://shop.example?",
    "https://shop.example#",
    "https://shop.example:443",
    "https://shop.example:8443",
    "https://shop.example:",
    "https://shop.example.",
    "https://shop.example.evil.example",
    "https://shop.examples",
    "https://shop.exampl",
    "https://evil-shop.example",
    "https://www.shop.example",
    "https://evil.example/https://shop.example",
    "https://shop.example@evil.example",
    "https://evil.example@shop.example",
    "https://shop.example evil",
    "https://shop.example,https://evil.example",
    "https://shop.example, http://localhost:3000",
    "https://shop.example http://localhost:3000",
    "HTTPS://shop.example",
    "https://Shop.example",
    "https://SHOP.EXAMPLE",
    "http://localhost",
    "http://localhost:30000",
    "http://127.0.0.1:3000",
];

#[track_caller]
fn assert_not_allowed(response: &Response) {
    for name in ["Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Credentials"] {
        response.assert_header(name, None);
    }
}

#[test]
fn an_origin_that_only_looks_like_an_allowed_one_is_another() {
    let app = app();

    for origin in OTHERS {
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        assert_not_allowed(response.assert_status(200));
        assert_not_allowed(preflight(&app, "/v1/pets", origin).send().assert_status(200));
    }
    for origin in [SHOP, DEVELOPER] {
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        response.assert_header("Access-Control-Allow-Origin", Some(origin));
    }
}

#[test]
fn an_origin_is_the_allowed_one_in_the_form_that_browsers_send() {
    for origin in
        ["http://127.0.0.1:8000", "http://[::1]:8000", "https://[2001:db8::1]", "https://xn--bcher-kva.example"]
    {
        let app = app_for(origin);
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        response.assert_header("Access-Control-Allow-Origin", Some(origin));
        let other = app.request("GET", "/v1/pets").header("Origin", SHOP).send();
        assert_not_allowed(other.assert_status(200));
    }
}

#[test]
fn of_two_origins_none_but_an_allowed_one_is_ever_named() {
    let app = app();

    for (first, second) in [(SHOP, "https://evil.example"), ("https://evil.example", SHOP), ("null", SHOP)] {
        for start in ["GET /v1/pets HTTP/1.1", "OPTIONS /v1/pets HTTP/1.1\r\nAccess-Control-Request-Method: GET"] {
            let mut connection = RawConnection::open(app.address);
            connection.send(format!("{start}\r\n{}Origin: {first}\r\nOrigin: {second}\r\n\r\n", fields()));
            let response = connection.response();
            assert_eq!(response.status, 200, "{response:?}");
            let lines = response.head.lines().map(str::to_ascii_lowercase);
            let allowed: Vec<_> = lines.filter(|line| line.starts_with("access-control-allow-origin")).collect();
            assert!(
                allowed.is_empty() || allowed == ["access-control-allow-origin: https://shop.example"],
                "{response:?}"
            );
        }
    }
}

#[test]
fn every_origin_is_the_star_where_every_origin_is_allowed() {
    let app = app_for("*");

    for origin in [SHOP, DEVELOPER, "null", "https://evil.example"] {
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        response.assert_status(200).assert_header("Access-Control-Allow-Origin", Some("*"));
        response.assert_header("Access-Control-Allow-Credentials", None);
        app.anonymous("GET", "/v1/pets")
            .header("Origin", origin)
            .send()
            .assert_header("Access-Control-Allow-Origin", Some("*"))
            .assert_error(401, "missing_api_key");
    }
}
