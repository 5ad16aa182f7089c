//! Standard output: the log and nothing else, one JSON object per line.

use animal_store_test_servers::{HttpClient, RawConnection};
use serde_json::Value;

use crate::program::{Program, TOKEN, lines, terminal};

#[test]
fn every_request_is_one_line() {
    let mut running = Program::with_key().start();
    let client = HttpClient::new(running.address()).with_token(TOKEN);
    let requests = [
        ("GET", "/v1/pets?limit=5", "/v1/pets", 200, None),
        (
            "HEAD",
            "/v1/pets/1",
            "/v1/pets/1",
            404,
            Some("pet_not_found"),
        ),
    ];
    for (number, (method, target, _, status, _)) in requests.iter().enumerate() {
        let request = client
            .request(method, target)
            .header("X-Request-Id", &format!("request-{number}"));
        // No proxy is trusted.
        request
            .header("X-Forwarded-For", "203.0.113.1")
            .header("User-Agent", "curl/8")
            .send()
            .assert_status(*status);
    }

    let exited = running.terminate();

    let lines = exited.requests();
    assert_eq!(lines.len(), requests.len(), "{lines:#?}");
    for (number, ((method, _, path, status, code), line)) in requests.iter().zip(&lines).enumerate()
    {
        assert_eq!(
            (&line["method"], &line["path"]),
            (&(*method).into(), &(*path).into()),
            "{line}"
        );
        assert_eq!(
            (&line["status"], &line["level"]),
            (&(*status).into(), &"INFO".into()),
            "{line}"
        );
        assert_eq!(line["request_id"], format!("request-{number}"), "{line}");
        assert_eq!(line["api_key"], "memory-1", "{line}");
        assert_eq!(line["code"].as_str(), *code, "{line}");
        assert_eq!(
            (&line["client"], &line["user_agent"]),
            (&"127.0.0.1".into(), &"curl/8".into()),
            "{line}"
        );
        assert_eq!(line["deprecated"] == true, *path == "/v1/pets/1", "{line}");
        assert!(
            line["microseconds"].as_u64() > Some(1) && line["bytes"].is_u64(),
            "{line}"
        );
    }
}

#[test]
fn a_request_that_is_refused_below_the_application_is_one_line() {
    let mut running = Program::with_key().start();
    let mut connection = RawConnection::open(running.address());
    connection.send("GET / HTTP/1.1\r\n\r\n");
    connection.response().assert_status(400);
    connection.assert_closed();

    let events = running.terminate().events();

    let lines: Vec<_> = events
        .iter()
        .filter(|event| event["message"] == "request refused")
        .collect();
    let [line] = lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&line["status"], &line["client"]),
        (&400.into(), &"127.0.0.1".into()),
        "{line}"
    );
    assert!(
        !events.iter().any(|event| event["message"] == "request"),
        "{events:?}"
    );
}

#[test]
fn the_log_is_text_with_colours_on_a_terminal_and_text_without_them_elsewhere_if_configured() {
    let (shown, stdout) = terminal();
    let _running = Program::with_key().stdout(stdout).start();
    let line = lines(shown)
        .find(|line| line.contains("listening"))
        .expect("the line is missing");
    assert!(
        line.contains('\u{1b}') && serde_json::from_str::<Value>(&line).is_err(),
        "{line}"
    );

    let mut running = Program::with_key()
        .env("ANIMAL_STORE_LOG__FORMAT", "text")
        .start();
    running.wait_for_text("listening");
    let exited = running.terminate();
    assert_eq!(exited.code, Some(0));
    assert!(
        exited
            .stdout
            .iter()
            .all(|line| serde_json::from_str::<Value>(line).is_err()),
        "{exited:?}"
    );
    assert!(!exited.output().contains('\u{1b}'), "{exited:?}");
}
