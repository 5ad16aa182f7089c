//! Standard output: the log and nothing else, one JSON object per line.

use crate::prelude::*;

#[test]
fn every_request_is_one_line_also_one_that_is_refused_below_the_application() {
    let mut running = Program::with_key().start();
    let client = running.client();
    for method in ["GET", "HEAD"] {
        let request = client
            .request(method, "/v1/pets?limit=5")
            .header("X-Request-Id", "listed")
            .header("User-Agent", "curl/8")
            // No proxy is trusted.
            .header("X-Forwarded-For", "203.0.113.1");
        request.send().assert_status(200);
    }

    let mut connection = RawConnection::open(running.address());
    connection.send("GET / HTTP/1.1\r\n\r\n");
    connection.response().assert_status(400);
    connection.assert_closed();

    let exited = running.terminate();
    let refused = exited.events_of("request refused");
    assert_members(
        only(&refused),
        &json!({"status": 400, "client": "127.0.0.1"}),
    );
    let lines = exited.requests();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    for (line, (method, bytes)) in lines.iter().zip([("GET", 2), ("HEAD", 0)]) {
        let expected = json!({
            "method": method, "path": "/v1/pets", "status": 200, "request_id": "listed", "client": "127.0.0.1",
            "user_agent": "curl/8", "api_key": "memory-1", "level": "INFO", "code": null, "deprecated": null,
            "bytes": bytes,
        });
        assert_members(line, &expected);
        assert!(line["microseconds"].as_u64() > Some(1));
    }
}

#[test]
fn the_log_is_text_with_colours_on_a_terminal_and_text_without_them_elsewhere_if_configured() {
    let is_text = |line: &String| serde_json::from_str::<Value>(line).is_err();
    let (shown, stdout) = terminal();
    let _running = Program::with_key().stdout(stdout).start();
    let line = lines(shown).find(|line| line.contains("listening"));
    let line = line.expect("a line");
    assert!(line.contains('\u{1b}') && is_text(&line), "{line}");

    let mut running = Program::with_key().set("log.format", "text").start();
    running.wait_for_text("listening");
    let exited = running.terminate();
    exited.assert_code(0).assert_lacks("\u{1b}");
    assert!(exited.stdout.iter().all(is_text), "{exited:?}");
}
