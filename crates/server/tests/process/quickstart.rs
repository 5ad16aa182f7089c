//! The quickstart: the first start, without any configuration.

use std::process::Command;

use animal_store_test_servers::HttpClient;
use serde_json::Value;

use crate::program::{Line, Program, Running};

/// Runs a command as it was printed, and returns the head and the body of the response.
fn paste(command: &str) -> (String, Value) {
    let output = Command::new("bash").args(["-c", command]).output().expect("bash and curl are installed");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{command}: {text:?}"));
    (head.to_owned(), serde_json::from_str(body).expect("JSON"))
}

/// Waits for the two commands.
fn commands(running: &mut Running) -> [String; 2] {
    [" -d ", "?status="].map(|part| {
        running.wait_for(|line| match line {
            Line::Err(text) if text.trim_start().starts_with("curl ") && text.contains(part) => Some(text.clone()),
            _ => None,
        })
    })
}

fn token(command: &str) -> String {
    let rest = command.split_once("Bearer ").expect("a token").1;
    rest.split_once('\'').expect("quotes").0.to_owned()
}

#[test]
fn both_commands_and_the_api_explorer_work_as_printed() {
    let mut running = Program::new().start();
    let [add, list] = commands(&mut running);

    let (head, added) = paste(&add);
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    assert_eq!((&added["name"], &added["status"]), (&"Rex".into(), &"available".into()));

    let (head, listed) = paste(&list);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(listed, Value::Array(vec![added]));

    let url = running.wait_for(|line| match line {
        Line::Err(text) => text.split_once("In a browser, with the same key: ").map(|(_, url)| url.to_owned()),
        Line::Out(_) => None,
    });
    let page = Command::new("curl").args(["-sfL", &url]).output().expect("curl is installed");
    assert!(page.status.success() && page.stdout.starts_with(b"<!DOCTYPE html>"), "{url}");
}

#[test]
fn the_token_is_only_in_the_two_commands_on_standard_error() {
    let mut running = Program::new().env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    let [add, list] = commands(&mut running);
    let token = token(&add);
    assert!(token.len() >= 43, "256 bits: {token}");
    paste(&add);
    paste(&list);

    let exited = running.terminate();

    assert_eq!(exited.code, Some(0), "{exited:?}");
    assert!(!exited.stdout.is_empty());
    assert!(!exited.stdout.join("\n").contains(&token), "the log contains the token");
    let showing: Vec<_> = exited.stderr.iter().filter(|line| line.contains(&token)).collect();
    assert_eq!(showing, [&add, &list]);
    assert_eq!(exited.stderr.iter().filter(|line| line.contains("curl")).count(), 2);
}

#[test]
fn every_start_generates_another_token() {
    let [mut first, mut second] = [Program::new().start(), Program::new().start()];
    let [first_token, second_token] = [&mut first, &mut second].map(|running| token(&commands(running)[0]));

    assert_ne!(first_token, second_token);
    assert_eq!(HttpClient::new(first.address()).with_token(&second_token).get("/v1/pets").status, 401);
}

#[test]
fn nothing_is_printed_if_a_key_is_configured() {
    let mut running = Program::with_key().start();
    running.address();

    let exited = running.terminate();

    assert_eq!((exited.code, &exited.stderr), (Some(0), &vec![]), "{exited:?}");
}
