//! Standard output: the log and nothing else, one JSON object per line.

use animal_store_test_servers::{HttpClient, RawConnection};
use serde_json::Value;

use crate::program::{Program, TOKEN};

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

    let lines = exited.requests();
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
fn a_request_that_is_refused_below_the_application_is_one_line() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    for (status, bytes) in [(400, "GET / HTTP/1.1\r\n\r\n"), (414, &target)] {
        let mut connection = RawConnection::open(address);
        connection.send(bytes);
        connection.response().assert_status(status);
        connection.assert_closed();
    }

    let events = running.terminate().events();

    let lines: Vec<_> = events.iter().filter(|event| event["message"] == "request refused").collect();
    assert_eq!(lines.iter().map(|line| line["status"].as_u64()).collect::<Vec<_>>(), [Some(400), Some(414)]);
    assert!(lines.iter().all(|line| line["client"] == "127.0.0.1"), "{lines:?}");
    assert!(!events.iter().any(|event| event["message"] == "request"), "{events:?}");
}

#[test]
fn the_format_text_is_text_without_colours_unless_on_a_terminal() {
    let mut running = Program::with_key().env("ANIMAL_STORE_LOG__FORMAT", "text").start();
    running.wait_for_text("listening");

    let exited = running.terminate();

    assert_eq!(exited.code, Some(0));
    assert!(exited.stdout.iter().all(|line| serde_json::from_str::<Value>(line).is_err()), "{exited:?}");
    assert!(!exited.output().contains('\u{1b}'), "{exited:?}");
}
