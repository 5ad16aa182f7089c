//! A whole life of keys, with everything logged; then every place where a token could have been left is searched.

use std::fs;

use animal_store_test_servers::RedisSpace;

use crate::{
    keys::{keys, token_and_id},
    program::{Ended, Program, get, read_to_end, send},
};

/// What may be searched, by where it is from.
type Traces = Vec<(String, String)>;

fn command_line(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("the process runs")
}

/// Runs a command that prints a token, and keeps all the rest that it writes.
fn run(space: &RedisSpace, args: &[&str], input: &str, traces: &mut Traces) -> Ended {
    let ended = keys(space, args).env("ANIMAL_STORE_LOG__FILTER", "trace").stdin(input).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    traces.push((format!("standard error of {args:?}"), ended.stderr.join("\n")));
    ended
}

fn everything_in_redis(space: &RedisSpace) -> String {
    let name_and_value = |name: String| format!("{name} {}", space.command(&["HGETALL", &name]));
    space.names().into_iter().map(name_and_value).collect::<Vec<_>>().join("\n")
}

/// Trace lines come before the event, which is the last line.
fn token_of(ended: &Ended) -> (String, String) {
    let last = ended.stderr.iter().rfind(|line| line.contains("\"audit\"")).expect("the audit line").clone();
    token_and_id(&Ended { code: ended.code, stdout: ended.stdout.clone(), stderr: vec![last] })
}

#[test]
fn no_token_is_left_in_any_log_error_list_process_or_database() {
    let space = RedisSpace::new();
    let mut traces = Traces::new();
    let mut tokens = Vec::new();
    let mut instances = [(), ()].map(|()| {
        let program = Program::with_redis(space.url()).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", space.prefix());
        program.env("ANIMAL_STORE_LOG__FILTER", "trace").start()
    });
    let addresses = instances.each_mut().map(|running| running.address());

    let (created, id) = token_of(&run(&space, &["create", "--label", "shop"], "", &mut traces));
    let registered = "registered-token-0123456789".to_owned();
    run(&space, &["create", "--label", "old", "--token-stdin"], &registered, &mut traces);
    let reader = token_of(&run(&space, &["create", "--label", "r", "--scopes", "read"], "", &mut traces)).0;
    let rotated = token_of(&run(&space, &["rotate", &id], "", &mut traces)).0;
    traces.push(("Redis".to_owned(), everything_in_redis(&space)));
    for args in [&["list"][..], &["list", "--json"]] {
        let list = run(&space, args, "", &mut traces);
        traces.push((format!("standard output of {args:?}"), list.stdout.join("\n")));
    }
    let mistyped = format!("{}x", &created[..60]);
    tokens.extend([created, registered, reader, rotated, mistyped, "never-seen-0123456789".to_owned()]);
    for round in ["before the revocation", "after it"] {
        for (address, token) in addresses.iter().flat_map(|address| tokens.iter().map(move |token| (address, token))) {
            traces.push((format!("an answer {round}"), get(*address, "/v1/pets", token)));
            let malformed =
                format!("GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n broken\r\n\r\n");
            traces.push((format!("a refusal {round}"), read_to_end(send(*address, &malformed))));
        }
        if round == "before the revocation" {
            run(&space, &["revoke", &id], "", &mut traces);
        }
    }
    for running in instances {
        traces.push(("a process list".to_owned(), command_line(running.pid())));
        running.signal("TERM");
        let ended = running.wait();
        assert!(ended.stdout.len() > 50, "everything is logged: {ended:?}");
        traces.push(("the log of an instance".to_owned(), ended.output()));
    }

    for (place, text) in &traces {
        for token in &tokens {
            assert!(!text.contains(&token[..20]), "{place} holds {token}: {text}");
        }
    }
}
