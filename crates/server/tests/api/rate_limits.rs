//! The limits on the rate of an API key and on the failed authentications of a client address.

use crate::prelude::*;

fn with_auth_failures(per_minute: &str, keys: &[(&str, &str)]) -> TestApp {
    TestApp::start_with(&[&[("http.auth_failures.per_minute", per_minute)], keys].concat())
}

#[track_caller]
fn assert_unlimited(response: &Response, status: u16) {
    response
        .assert_status(status)
        .assert_header("RateLimit", None)
        .assert_header("RateLimit-Policy", None);
}

#[test]
fn a_key_beyond_its_rate_is_a_429_and_other_keys_are_served() {
    let app = TestApp::start_with(&[
        ("http.rate_limit.per_second", "1"),
        ("http.rate_limit.burst", "20"),
    ]);
    // Every response has the quota that is left, an error too.
    let left = Some(r#""default";r=19;t=1"#);
    let first = app.get("/v1/nowhere");
    first.assert_status(404).assert_header("RateLimit", left);
    assert_unlimited(&app.anonymous("GET", "/v1/pets").send(), 401);
    assert_unlimited(&app.get("/openapi.json"), 200);

    // The workers share the quota. The unit tests of `rate_limits` have what is admitted later.
    let responses: Vec<_> = (0..100).map(|_| app.get("/v1/pets")).collect();
    let is_admitted = |response: &&Response| response.status == 200;
    let admitted = responses.iter().take_while(is_admitted).count();
    assert!(admitted >= 19, "{admitted}");
    let refused = &responses[admitted];
    refused
        .assert_header("Retry-After", Some("1"))
        .assert_header("RateLimit-Policy", Some(r#""default";q=20;w=20"#))
        .assert_header("RateLimit", Some(r#""default";r=0;t=1"#))
        .assert_error(429, "rate_limited");
    let refused = responses.iter().filter(|response| response.status == 429);
    let shed = r#"requests_shed_total{reason="rate_limit"}"#;
    assert_eq!(Samples::read(&app).http(shed), refused.count());

    let other = HttpClient::new(app.address).with_token(OTHER_TOKEN);
    let other = other.get("/v1/pets");
    other.assert_status(200).assert_header("RateLimit", left);
}

#[test]
fn an_address_with_too_many_failed_authentications_is_a_429_whatever_its_key_is() {
    let shop = "https://shop.example";
    let app = with_auth_failures("3", &[("http.cors_origins", shop)]);
    let with = |authorization| {
        let request = app.anonymous("GET", "/v1/pets");
        request.header("Authorization", authorization)
    };
    let preflight = || {
        let request = app.anonymous("OPTIONS", "/v1/pets").header("Origin", shop);
        request.header("Access-Control-Request-Method", "GET")
    };

    // Only the failed authentications count.
    for (request, status) in [
        (app.request("GET", "/v1/nowhere"), 404),
        (app.request("POST", "/v1/pets").json("{}"), 400),
        (app.anonymous("GET", "/nowhere"), 404),
        (preflight(), 200),
        (app.anonymous("GET", "/v1/nowhere"), 401),
        (with("Bearer unknown"), 401),
        (with("Bearer a b"), 401),
    ] {
        request.send().assert_status(status);
    }
    for request in [
        with("Basic x"),
        with("Bearer unknown"),
        app.request("PUT", "/v1/nowhere").json(PET),
    ] {
        let response = request.send();
        response
            .assert_header("WWW-Authenticate", None)
            .assert_header("Cache-Control", Some("no-store"))
            .assert_error(429, "rate_limited");
        let seconds = response.header("Retry-After").map(str::parse::<u64>);
        let is_bounded = seconds.is_some_and(|seconds| matches!(seconds, Ok(1..=20)));
        assert!(is_bounded, "{response:?}");
        assert_unlimited(&response, 429);
    }
    let shed = r#"requests_shed_total{reason="auth_failures"}"#;
    assert_eq!(Samples::read(&app).http(shed), 3);
    for request in [
        preflight(),
        app.anonymous("GET", "/openapi.json"),
        app.management("GET", "/ready"),
    ] {
        request.send().assert_status(200);
    }
}

#[test]
fn each_client_of_a_trusted_proxy_has_its_own_failures() {
    let app = with_auth_failures("1", &[("http.trusted_proxies", "127.0.0.1")]);
    let of = |request: Request, client| request.header("X-Forwarded-For", client).send();

    of(app.anonymous("GET", "/v1/pets"), "203.0.113.1").assert_status(401);

    of(app.request("GET", "/v1/pets"), "198.51.100.1, 203.0.113.1")
        .assert_error(429, "rate_limited");
    of(app.request("GET", "/v1/pets"), "203.0.113.2").assert_status(200);
    app.get("/v1/pets").assert_status(200);
}
