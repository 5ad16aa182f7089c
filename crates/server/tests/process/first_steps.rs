//! The first start, without any configuration.

use std::process::Command;

use serde_json::Value;

use crate::program::{Line, Program, Running, get};

/// Runs a command as it was printed; returns the head and the body of the answer.
fn paste(command: &str) -> (String, Value) {
    let output = Command::new("bash").args(["-c", command]).output().expect("bash and curl are installed");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{command}: {text:?}"));
    (head.to_owned(), serde_json::from_str(body).expect("JSON"))
}

/// Everything up to the second command.
fn commands(running: &mut Running) -> [String; 2] {
    let command = |part: &'static str| {
        move |line: &Line| match line {
            Line::Err(text) if text.trim_start().starts_with("curl ") && text.contains(part) => Some(text.clone()),
            _ => None,
        }
    };
    [running.wait_for(command(" -d ")), running.wait_for(command("?status="))]
}

fn token(command: &str) -> String {
    let rest = command.split_once("Bearer ").expect("a token").1;
    rest.split_once('\'').expect("quotes").0.to_owned()
}

#[test]
fn both_commands_that_are_shown_work_as_they_are() {
    let mut running = Program::new().start();
    let [add, list] = commands(&mut running);

    let (head, added) = paste(&add);
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    assert_eq!((&added["name"], &added["status"]), (&"Rex".into(), &"available".into()));

    let (head, listed) = paste(&list);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(listed, Value::Array(vec![added]));
}

#[test]
fn the_page_that_is_shown_is_there() {
    let mut running = Program::new().start();
    let url = running.wait_for(|line| match line {
        Line::Err(text) => text.split_once("In a browser, with the same key: ").map(|(_, url)| url.to_owned()),
        Line::Out(_) => None,
    });

    let page = Command::new("curl").args(["-sfL", &url]).output().expect("curl is installed");

    assert!(page.status.success(), "{url}");
    assert!(page.stdout.starts_with(b"<!DOCTYPE html>"), "{url}");
}

#[test]
fn the_key_is_shown_on_standard_error_in_two_commands_and_nowhere_else() {
    let mut running = Program::new().env("ANIMAL_STORE_LOG__FILTER", "trace").start();
    let [add, list] = commands(&mut running);
    let token = token(&add);
    assert!(token.len() >= 43, "256 bits: {token}");
    paste(&add);
    paste(&list);
    running.signal("TERM");

    let ended = running.wait();

    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.is_empty());
    assert!(!ended.stdout.join("\n").contains(&token), "the log shows the key");
    let showing: Vec<_> = ended.stderr.iter().filter(|line| line.contains(&token)).collect();
    assert_eq!(showing, [&add, &list]);
    assert_eq!(ended.stderr.iter().filter(|line| line.contains("curl")).count(), 2);
}

#[test]
fn every_start_makes_another_key() {
    let [mut first, mut second] = [Program::new().start(), Program::new().start()];
    let [first_token, second_token] = [&mut first, &mut second].map(|running| token(&commands(running)[0]));

    assert_ne!(first_token, second_token);
    assert!(get(first.address(), "/v1/pets", &second_token).starts_with("HTTP/1.1 401 "));
}

#[test]
fn where_a_key_is_configured_none_is_made_and_none_is_shown() {
    let mut running = Program::with_key().start();
    running.address();
    running.signal("TERM");

    let ended = running.wait();

    assert_eq!((ended.code, &ended.stderr), (Some(0), &Vec::new()), "{ended:?}");
}
