//! Standard output: the log and nothing else, a JSON object a line.

use serde_json::Value;

use crate::program::{Ended, Program, TOKEN, get, read_to_end, send};

fn events(ended: &Ended) -> Vec<Value> {
    let event = |line: &String| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    ended.stdout.iter().map(event).collect()
}

#[test]
fn every_request_is_one_line_with_what_was_asked_and_answered() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let head = format!("HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n");
    let requests = [
        ("GET", "/v1/pets?limit=5", "/v1/pets", 200),
        ("POST", "/v1/pets", "/v1/pets", 400),
        ("HEAD", "/v1/pets/1", "/v1/pets/1", 404),
        ("DELETE", "/v1/pets", "/v1/pets", 405),
        ("GET", "/v1/nowhere", "/v1/nowhere", 404),
    ];
    for (number, (method, target, _, _)) in requests.iter().enumerate() {
        read_to_end(send(address, &format!("{method} {target} {head}X-Request-Id: request-{number}\r\n\r\n")));
    }
    running.signal("TERM");

    let ended = running.wait();

    let lines: Vec<_> = events(&ended).into_iter().filter(|event| event["message"] == "request").collect();
    assert_eq!(lines.len(), requests.len(), "{lines:#?}");
    for (number, ((method, _, path, status), line)) in requests.iter().zip(&lines).enumerate() {
        assert_eq!((&line["method"], &line["path"]), (&(*method).into(), &(*path).into()), "{line}");
        assert_eq!((&line["status"], &line["level"]), (&(*status).into(), &"INFO".into()), "{line}");
        assert_eq!(line["request_id"], format!("request-{number}"), "{line}");
        assert_eq!(line["api_key"], "memory-1", "{line}");
        assert_eq!(line["deprecated"] == true, *path == "/v1/pets/1", "{line}");
        assert!(line["microseconds"].is_u64() && line["bytes"].is_u64(), "{line}");
    }
}

#[test]
fn the_start_says_that_animals_are_gone_when_the_process_ends() {
    let mut running = Program::with_key().start();
    running.address();
    running.signal("TERM");

    let ended = running.wait();

    let warnings: Vec<_> = events(&ended).into_iter().filter(|event| event["level"] == "WARN").collect();
    assert!(
        warnings.iter().any(|event| event["message"].as_str().is_some_and(|text| text.contains("gone"))),
        "{warnings:#?}"
    );
}

#[test]
fn no_token_is_ever_logged() {
    let unknown = "unknown-token-1";
    let malformed = "malformed-token-1!";
    let mut running = Program::with_key().env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    let address = running.address();
    for (token, status) in [(TOKEN, "200"), (unknown, "401"), (malformed, "401")] {
        let response = get(address, "/v1/pets", token);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(!response.contains(token), "{response}");
        // Requests that are refused below the application, which may report what it could not read.
        let broken = format!("GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
        for rest in ["\r\n", "Host: a\r\nHost: b\r\n\r\n", "Content-Length: -1\r\n\r\n", "\0\r\n\r\n"] {
            let response = read_to_end(send(address, &format!("{broken}{rest}")));
            assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        }
    }
    running.signal("TERM");

    let ended = running.wait();

    assert!(events(&ended).iter().any(|event| event["level"] == "TRACE"), "the filter does nothing");
    for token in [TOKEN, unknown, malformed] {
        let shown: Vec<_> = ended.stdout.iter().chain(&ended.stderr).filter(|line| line.contains(token)).collect();
        assert!(shown.is_empty(), "{shown:#?}");
    }
}

#[test]
fn a_client_cannot_write_lines_of_the_log() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let forged = "%0A{\"message\":\"forged\"}";
    get(address, &format!("/v1/{forged}"), TOKEN);
    read_to_end(send(address, "GET /v1/pets HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: \"}\r\n\r\n"));
    running.signal("TERM");

    let ended = running.wait();

    assert!(!events(&ended).iter().any(|event| event["message"] == "forged"));
}

#[test]
fn text_is_written_where_it_is_asked_for() {
    let mut running = Program::with_key().env("ANIMAL_STORE_LOG__FORMAT", "text").start();
    running.wait_for(|line| match line {
        crate::program::Line::Out(text) => text.contains("listening").then_some(()),
        crate::program::Line::Err(_) => None,
    });
    running.signal("TERM");

    let ended = running.wait();

    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.iter().all(|line| serde_json::from_str::<Value>(line).is_err()), "{ended:?}");
    assert!(!ended.output().contains('\u{1b}'), "colours where no terminal is: {ended:?}");
}
