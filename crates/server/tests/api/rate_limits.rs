//! The limits on the rate of an API key and on the failed authentications of a client address.

use std::time::Instant;

use animal_store_test_servers::{HttpClient, Request, Response};

use crate::{
    metrics::Samples,
    test_app::{OTHER_TOKEN, PET, TestApp},
};

fn with_rate(per_second: &str, burst: &str) -> TestApp {
    TestApp::start_with(&[
        ("http.rate_limit.per_second", per_second),
        ("http.rate_limit.burst", burst),
    ])
}

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
    let app = with_rate("1", "20");
    let start = Instant::now();

    // Every response has the quota that is left, an error too.
    let first = app.get("/v1/nowhere");
    first
        .assert_status(404)
        .assert_header("RateLimit", Some(r#""default";r=19;t=1"#));
    assert_unlimited(&app.anonymous("GET", "/v1/pets").send(), 401);
    assert_unlimited(&app.get("/openapi.json"), 200);

    // The workers share the quota, which grows by one request per second.
    let (admitted, refused): (Vec<_>, Vec<_>) = (0..100)
        .map(|_| app.get("/v1/pets"))
        .partition(|response| response.status == 200);
    let restored = usize::try_from(start.elapsed().as_secs()).expect("few seconds") + 1;
    assert!(
        (19..=19 + restored).contains(&admitted.len()),
        "{} in {restored} s",
        admitted.len()
    );
    refused[0]
        .assert_header("Retry-After", Some("1"))
        .assert_header("Cache-Control", Some("no-store"));
    refused[0].assert_header("RateLimit-Policy", Some(r#""default";q=20;w=20"#));
    refused[0]
        .assert_header("RateLimit", Some(r#""default";r=0;t=1"#))
        .assert_error(429, "rate_limited");

    let other = HttpClient::new(app.address)
        .with_token(OTHER_TOKEN)
        .get("/v1/pets");
    other
        .assert_status(200)
        .assert_header("RateLimit", Some(r#""default";r=19;t=1"#));
    assert_eq!(
        Samples::read(&app).http(r#"requests_shed_total{reason="rate_limit"}"#),
        refused.len()
    );
}

#[test]
fn an_address_with_too_many_failures_is_a_429_whatever_its_key_is() {
    let app = with_auth_failures("3", &[]);
    let with = |authorization| {
        app.anonymous("GET", "/v1/pets")
            .header("Authorization", authorization)
    };

    app.anonymous("GET", "/v1/nowhere")
        .send()
        .assert_error(401, "missing_api_key");
    with("Bearer unknown")
        .send()
        .assert_error(401, "invalid_api_key");
    with("Bearer a b")
        .send()
        .assert_error(401, "invalid_api_key");

    for request in [
        with("Basic x"),
        with("Bearer unknown"),
        app.request("PUT", "/v1/nowhere").json(PET),
    ] {
        let response = request.send();
        response
            .assert_header("WWW-Authenticate", None)
            .assert_header("Cache-Control", Some("no-store"));
        let seconds = response
            .header("Retry-After")
            .and_then(|value| value.parse().ok());
        assert!(
            seconds.is_some_and(|seconds: u64| (1..=20).contains(&seconds)),
            "{response:?}"
        );
        response.assert_error(429, "rate_limited");
        assert_unlimited(&response, 429);
    }
    assert_eq!(
        Samples::read(&app).http(r#"requests_shed_total{reason="auth_failures"}"#),
        3
    );
}

#[test]
fn only_failed_authentications_count() {
    let app = with_auth_failures("1", &[("http.cors_origins", "https://shop.example")]);
    let preflight = || {
        let request = app
            .anonymous("OPTIONS", "/v1/pets")
            .header("Origin", "https://shop.example");
        request
            .header("Access-Control-Request-Method", "GET")
            .send()
    };

    app.get("/v1/nowhere").assert_status(404);
    app.post("{}").assert_status(400);
    app.anonymous("GET", "/nowhere").send().assert_status(404);
    preflight().assert_status(200);
    app.anonymous("GET", "/v1/pets").send().assert_status(401);

    app.get("/v1/pets").assert_error(429, "rate_limited");
    preflight().assert_status(200);
    app.anonymous("GET", "/openapi.json")
        .send()
        .assert_status(200);
    app.management("GET", "/ready").send().assert_status(200);
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
