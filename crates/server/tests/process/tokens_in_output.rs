//! The life cycle of API keys at the log level `trace`, then a search for tokens in every output.

use std::fs;

use animal_store_test_servers::{HttpClient, RawConnection, RedisSpace, Response};

use crate::{
    keys::{keys, token_and_id},
    program::{Exited, Program},
};

/// Texts to search, each with its origin.
type Texts = Vec<(String, String)>;

fn command_line(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("the process runs")
}

/// Runs a command, and keeps its standard error.
fn run(space: &RedisSpace, args: &[&str], input: &str, texts: &mut Texts) -> Exited {
    let exited = keys(space, args).env("ANIMAL_STORE_LOG__FILTER", "trace").stdin(input).run();
    assert_eq!(exited.code, Some(0), "{exited:?}");
    texts.push((format!("standard error of {args:?}"), exited.stderr.join("\n")));
    exited
}

fn everything_in(response: &Response) -> String {
    format!("{}{}", response.head, response.text())
}

fn everything_in_redis(space: &RedisSpace) -> String {
    let name_and_value = |name: String| format!("{name} {}", space.command(&["HGETALL", &name]));
    space.names().into_iter().map(name_and_value).collect::<Vec<_>>().join("\n")
}

/// Returns the token and the id. Standard error contains trace lines before the audit line.
fn token_of(exited: &Exited) -> (String, String) {
    let last = exited.stderr.iter().rfind(|line| line.contains("\"audit\"")).expect("the audit line").clone();
    token_and_id(&Exited { code: exited.code, stdout: exited.stdout.clone(), stderr: vec![last] })
}

#[test]
fn no_token_is_in_a_log_an_error_a_list_a_process_list_or_redis() {
    let space = RedisSpace::new();
    let mut texts = Texts::new();
    let mut tokens = Vec::new();
    let mut instances = [(), ()].map(|()| Program::with_redis(&space).env("ANIMAL_STORE_LOG__FILTER", "trace").start());
    let addresses = instances.each_mut().map(|running| running.address());

    let (created, id) = token_of(&run(&space, &["create", "--label", "shop"], "", &mut texts));
    let registered = "registered-token-0123456789".to_owned();
    run(&space, &["create", "--label", "old", "--token-stdin"], &registered, &mut texts);
    let reader = token_of(&run(&space, &["create", "--label", "r", "--scopes", "read"], "", &mut texts)).0;
    let rotated = token_of(&run(&space, &["rotate", &id], "", &mut texts)).0;
    texts.push(("Redis".to_owned(), everything_in_redis(&space)));
    for args in [&["list"][..], &["list", "--json"]] {
        let list = run(&space, args, "", &mut texts);
        texts.push((format!("standard output of {args:?}"), list.stdout.join("\n")));
    }
    let mistyped = format!("{}x", &created[..60]);
    let others = ["never-seen-0123456789", "malformed!-0123456789"].map(str::to_owned);
    tokens.extend([created, registered, reader, rotated, mistyped].into_iter().chain(others));
    for round in ["before the revocation", "after the revocation"] {
        for (address, token) in addresses.iter().flat_map(|address| tokens.iter().map(move |token| (address, token))) {
            texts.push((
                format!("a response {round}"),
                everything_in(&HttpClient::new(*address).with_token(token).get("/v1/pets")),
            ));
            // The HTTP library refuses these requests, and could log what it received.
            let start = format!("GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
            for rest in ["\r\n", "Host: a\r\n broken\r\n\r\n", "Content-Length: -1\r\n\r\n", "\0\r\n\r\n"] {
                let mut connection = RawConnection::open(*address);
                connection.send(format!("{start}{rest}"));
                let response = connection.response();
                response.assert_status(400);
                texts.push((format!("a refusal {round}"), everything_in(&response)));
            }
        }
        if round == "before the revocation" {
            run(&space, &["revoke", &id], "", &mut texts);
        }
    }
    for running in instances {
        texts.push(("a process list".to_owned(), command_line(running.pid())));
        let exited = running.terminate();
        assert!(exited.events().iter().any(|event| event["level"] == "TRACE"), "the filter has no effect");
        texts.push(("the log of an instance".to_owned(), exited.output()));
    }

    for (origin, text) in &texts {
        for token in &tokens {
            assert!(!text.contains(&token[..20]), "{origin} contains {token}: {text}");
        }
    }
}
