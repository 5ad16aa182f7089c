//! Standard output: the log and nothing else, one JSON object per line.

use animal_store_test_servers::{HttpClient, RawConnection};
use serde_json::{Value, json};

use crate::program::{Line, Program, TOKEN};

#[test]
fn every_request_is_one_line() {
    let mut running = Program::with_key().start();
    let client = HttpClient::new(running.address()).with_token(TOKEN);
    let requests = [
        ("GET", "/v1/pets?limit=5", "/v1/pets", 200, None),
        ("POST", "/v1/pets", "/v1/pets", 400, Some("invalid_body")),
        ("HEAD", "/v1/pets/1", "/v1/pets/1", 404, Some("pet_not_found")),
        ("DELETE", "/v1/pets", "/v1/pets", 405, Some("method_not_allowed")),
        ("GET", "/v1/nowhere", "/v1/nowhere", 404, Some("route_not_found")),
    ];
    for (number, (method, target, _, status, _)) in requests.iter().enumerate() {
        let request = client.request(method, target).header("X-Request-Id", &format!("request-{number}"));
        // No proxy is trusted.
        request.header("X-Forwarded-For", "203.0.113.1").header("User-Agent", "curl/8").send().assert_status(*status);
    }

    let exited = running.terminate();

    let lines: Vec<_> = exited.events().into_iter().filter(|event| event["message"] == "request").collect();
    assert_eq!(lines.len(), requests.len(), "{lines:#?}");
    for (number, ((method, _, path, status, code), line)) in requests.iter().zip(&lines).enumerate() {
        assert_eq!((&line["method"], &line["path"]), (&(*method).into(), &(*path).into()), "{line}");
        assert_eq!((&line["status"], &line["level"]), (&(*status).into(), &"INFO".into()), "{line}");
        assert_eq!(line["request_id"], format!("request-{number}"), "{line}");
        assert_eq!(line["api_key"], "memory-1", "{line}");
        assert_eq!(line["code"].as_str(), *code, "{line}");
        assert_eq!((&line["client"], &line["user_agent"]), (&"127.0.0.1".into(), &"curl/8".into()), "{line}");
        assert_eq!(line["deprecated"] == true, *path == "/v1/pets/1", "{line}");
        assert!(line["microseconds"].as_u64() > Some(1) && line["bytes"].is_u64(), "{line}");
    }
}

#[test]
fn only_requests_with_an_error_have_a_line_if_that_is_configured() {
    let mut running = Program::with_key().env("ANIMAL_STORE_LOG__REQUESTS", "errors").start();
    let address = running.address();
    let client = HttpClient::new(address).with_token(TOKEN);
    client.get("/v1/pets").assert_status(200);
    client.request("POST", "/v1/pets").json(r#"{"name":"Rex","categoryId":1}"#).send().assert_status(201);
    client.get("/v1/pets/9").assert_status(404);
    HttpClient::new(address).get("/v1/pets").assert_status(401);
    let mut refused = RawConnection::open(address);
    refused.send("no request\r\n\r\n");
    refused.response().assert_status(400);

    let events = running.terminate().events();

    let statuses: Vec<_> = events.iter().filter_map(|event| event["status"].as_u64()).collect();
    assert_eq!(statuses, [404, 401, 400]);
}

#[test]
fn a_request_that_is_refused_below_the_application_is_one_line() {
    // On a busy machine, the other heads arrive within this time.
    let mut running = Program::with_key().env("ANIMAL_STORE_HTTP__HEAD_TIMEOUT", "4s").start();
    let address = running.address();
    let head = |fields: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let refused = [
        (400, "GET / HTTP/1.1\r\n\r\n".to_owned()),
        (400, "no request\r\n\r\n".to_owned()),
        (400, head("").replacen("Host: a", "Host: a/b", 1)),
        (408, "GET / HT".to_owned()),
        (414, head("").replacen('/', &format!("/{}", "x".repeat(9000)), 1)),
        (414, head("").replacen('/', &format!("/{}", "x".repeat(40_000)), 1)),
        (431, head(&"X: x\r\n".repeat(97))),
        (431, head(&format!("X: {}\r\n", "x".repeat(40_000)))),
    ];
    for (status, bytes) in &refused {
        let mut connection = RawConnection::open(address);
        connection.send(bytes);
        connection.response().assert_status(*status);
        connection.assert_closed();
    }

    let events = running.terminate().events();

    let lines: Vec<_> = events.iter().filter(|event| event["message"] == "request refused").collect();
    let logged: Vec<_> = lines.iter().map(|line| line["status"].as_u64()).collect();
    let expected: Vec<_> = refused.iter().map(|(status, _)| Some(u64::from(*status))).collect();
    assert_eq!(logged, expected);
    assert!(lines.iter().all(|line| line["client"] == "127.0.0.1"), "{lines:?}");
    assert!(!events.iter().any(|event| event["message"] == "request"), "{events:?}");
}

#[test]
fn the_start_warns_that_pets_in_memory_are_lost_at_the_end() {
    let mut running = Program::with_key().start();
    let warning = running.wait_for_log(|event| event["level"] == "WARN");
    assert!(warning["message"].as_str().is_some_and(|message| message.contains("memory")), "{warning}");
}

#[test]
fn a_503_of_ready_is_one_error_whose_cause_names_the_check() {
    let mut running = Program::with_redis_url("redis://127.0.0.1:1").start();
    let response = HttpClient::new(running.management_address()).get("/ready");

    response.assert_status(503).assert_header("Retry-After", Some("1"));
    let checks = json!({ "storage": "ready", "keys": "unavailable" });
    assert_eq!(response.json(), json!({ "status": "unavailable", "checks": checks }));
    let line = running.wait_for_log(|event| event["path"] == "/ready");
    assert_eq!((&line["level"], &line["status"]), (&"ERROR".into(), &503.into()), "{line}");
    assert!(line["cause"].as_str().is_some_and(|cause| cause.starts_with("keys: ")), "{line}");
}

#[test]
fn tokens_are_never_logged() {
    let unknown = "unknown-token-1";
    let malformed = "malformed-token-1!";
    let mut running = Program::with_key().env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    let address = running.address();
    for (token, status) in [(TOKEN, 200), (unknown, 401), (malformed, 401)] {
        let response = HttpClient::new(address).with_token(token).get("/v1/pets");
        assert_eq!(response.status, status, "{response:?}");
        assert!(!response.head.contains(token) && !response.text().contains(token), "{response:?}");
        // The HTTP library refuses these requests, and could log what it received.
        let start = format!("GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
        for rest in ["\r\n", "Host: a\r\nHost: b\r\n\r\n", "Content-Length: -1\r\n\r\n", "\0\r\n\r\n"] {
            let mut connection = RawConnection::open(address);
            connection.send(format!("{start}{rest}"));
            let responses = connection.responses_to_end();
            assert!(responses[0].head.starts_with("HTTP/1.1 400 "), "{responses:?}");
        }
    }

    let exited = running.terminate();

    assert!(exited.events().iter().any(|event| event["level"] == "TRACE"), "the filter has no effect");
    for token in [TOKEN, unknown, malformed] {
        assert!(!exited.output().contains(token), "{token}: {exited:#?}");
    }
}

#[test]
fn a_client_cannot_forge_lines_of_the_log() {
    let mut running = Program::with_key().start();
    let client = HttpClient::new(running.address()).with_token(TOKEN);
    let forged = "%0A{\"message\":\"forged\"}";
    client.get(&format!("/v1/{forged}")).assert_status(404);
    let request = client.request("GET", "/v1/pets").header("X-Request-Id", "\"}");
    request.send().assert_status(200);

    let exited = running.terminate();

    assert!(!exited.events().iter().any(|event| event["message"] == "forged"));
}

#[test]
fn the_format_text_is_text_without_colours_unless_on_a_terminal() {
    let mut running = Program::with_key().env("ANIMAL_STORE_LOG__FORMAT", "text").start();
    running.wait_for(|line| matches!(line, Line::Out(text) if text.contains("listening")).then_some(()));

    let exited = running.terminate();

    assert_eq!(exited.code, Some(0));
    assert!(exited.stdout.iter().all(|line| serde_json::from_str::<Value>(line).is_err()), "{exited:?}");
    assert!(!exited.output().contains('\u{1b}'), "{exited:?}");
}
