//! Messages are made for clients: they never show what the service is made of.

use crate::test_app::TestApp;

const FORBIDDEN: [&str; 13] = [
    "serde",
    "expected",
    "line",
    "column",
    "rawvalue",
    "::",
    "actix",
    "rust",
    "i64",
    "u8",
    "utf8error",
    "parseint",
    "err(",
];

/// Bodies that are wrong in every way the service can tell.
fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> =
        ["", " ", "{", "[", "}", "x", "{]", "[1", "nul", "\"", "{\"a\"", "{\"a\":", "{\"a\":1,}"]
            .into_iter()
            .chain(["null", "true", "1", "\"x\"", "[]", "[\"Rex\",7]", "{}", "{} x", "{\"a\":01}", "{'a':1}", "{a:1}"])
            .map(|body| body.as_bytes().to_vec())
            .collect();
    bodies.push(b"{\"name\":\"\xff\",\"categoryId\":7}".to_vec());
    bodies.push("[".repeat(1000).into_bytes());
    bodies.push("{\"a\":".repeat(1000).into_bytes());
    let long = format!("\"{}\"", "x".repeat(256));
    for value in ["null", "true", "[]", "{}", "\"\"", "\"x\\u0000\"", "\"\\ud800\"", "1.5", "1e400", "NaN", &long] {
        // No member takes any of these, so each of these animals is wrong.
        bodies.push(format!(r#"{{"name":{value},"categoryId":"x"}}"#).into_bytes());
        bodies.push(format!(r#"{{"name":"","categoryId":{value}}}"#).into_bytes());
        bodies.push(format!(r#"{{"name":"Rex","categoryId":7,"status":{value}}}"#).into_bytes());
        bodies.push(format!(r#"{{"name":{value},"name":{value},"categoryId":7}}"#).into_bytes());
    }
    bodies
}

fn queries() -> Vec<String> {
    let values = ["", "0", "101", "-1", "1.5", "x", "%00", "%FF", "99999999999999999999", "AAAAAAAAAAB"];
    let mut queries = vec!["limit=0&status=x&cursor=x".to_owned()];
    for name in ["limit", "status", "cursor"] {
        queries.extend(values.map(|value| format!("{name}={value}")));
        queries.push(format!("{name}=1&{name}=1"));
    }
    queries
}

#[track_caller]
fn assert_plain(message: &str) {
    let lower = message.to_lowercase();
    for forbidden in FORBIDDEN {
        assert!(!lower.contains(forbidden), "{forbidden} in {message}");
    }
}

#[test]
fn a_400_never_shows_what_the_service_is_made_of() {
    let app = TestApp::start();
    let (bodies, queries) = (bodies(), queries());

    let of_bodies = bodies.iter().map(|body| app.post(body).assert_error(400, "invalid_body"));
    let of_queries =
        queries.iter().map(|query| app.get(&format!("/v1/pets?{query}")).assert_error(400, "invalid_query"));

    for message in of_bodies.chain(of_queries) {
        assert_plain(&message);
    }
}

#[test]
fn no_other_error_shows_it_either() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets");
    let refused = |authorization| app.anonymous("GET", "/v1/pets").header("Authorization", authorization).send();

    for message in [
        app.anonymous("GET", "/v1/pets").send().assert_error(401, "missing_api_key"),
        refused("Bearer a b").assert_error(401, "invalid_api_key"),
        refused("Bearer unknown").assert_error(401, "invalid_api_key"),
        app.get("/v1/pets/abc").assert_error(404, "pet_not_found"),
        app.get("/nowhere").assert_error(404, "route_not_found"),
        app.request("DELETE", "/v1/pets").send().assert_error(405, "method_not_allowed"),
        post().json("x".repeat(16_385)).send().assert_error(413, "payload_too_large"),
        post().body("{}").send().assert_error(415, "unsupported_media_type"),
        post().header("Content-Encoding", "gzip").json("{}").send().assert_error(415, "unsupported_media_type"),
    ] {
        assert_plain(&message);
    }
}

#[test]
fn a_400_never_repeats_what_the_client_sent() {
    let app = TestApp::start();

    for message in [
        app.post(r#"{"name":["marker"],"categoryId":"marker","status":"marker"}"#).assert_error(400, "invalid_body"),
        app.post(r#"{"marker":marker}"#).assert_error(400, "invalid_body"),
        app.post(r#""marker""#).assert_error(400, "invalid_body"),
        app.get("/v1/pets?limit=marker&status=marker&cursor=marker").assert_error(400, "invalid_query"),
        app.get("/v1/pets?status=%3Cmarker%3E").assert_error(400, "invalid_query"),
    ] {
        assert!(!message.contains("marker"), "{message}");
    }
}

#[test]
fn the_same_mistake_has_the_same_message() {
    let app = TestApp::start();

    let first = app.post(r#"{"status":"x"}"#);
    let second = app.post(r#"{"status":"x"}"#);

    assert_eq!(first.assert_error(400, "invalid_body"), second.assert_error(400, "invalid_body"));
}
