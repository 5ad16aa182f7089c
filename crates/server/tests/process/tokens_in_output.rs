//! The life cycle of API keys at the log level `trace`, then a search for tokens in every output.

use std::fs;

use animal_store_test_servers::{HttpClient, RawConnection, RedisSpace};

use crate::{
    keys::{keys, token_and_id},
    program::{Exited, Program},
};

#[test]
fn no_token_is_in_a_log_an_error_a_list_a_process_list_or_redis() {
    let space = RedisSpace::new();
    let mut running = Program::with_redis(&space)
        .env("ANIMAL_STORE_LOG__FILTER", "trace")
        .start();
    let address = running.address();
    // Texts to search, each with its origin.
    let mut texts = vec![];
    let mut run = |args: &[&str], input: &str| -> Exited {
        let exited = keys(&space, args)
            .env("ANIMAL_STORE_LOG__FILTER", "trace")
            .stdin(input)
            .run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
        texts.push((
            format!("standard error of {args:?}"),
            exited.stderr.join("\n"),
        ));
        exited
    };
    let (created, id) = token_and_id(&run(&["create", "--label", "shop"], ""));
    let registered = "registered-token-0123456789".to_owned();
    run(&["create", "--label", "old", "--token-stdin"], &registered);
    let rotated = token_and_id(&run(&["rotate", &id], "")).0;
    let lists = [&["list"][..], &["list", "--json"]].map(|args| run(args, "").stdout.join("\n"));
    texts.extend(lists.map(|list| ("a list".to_owned(), list)));
    let in_redis = space.names().into_iter().map(|name| {
        let read = if name.ends_with(":changes") {
            &["ZRANGE", &*name, "0", "-1"][..]
        } else {
            &["HGETALL", &name]
        };
        format!("{name} {}", space.command(read))
    });
    texts.extend(in_redis.map(|text| ("Redis".to_owned(), text)));

    let mistyped = format!("{}x", &created[..60]);
    let others = ["never-seen-0123456789", "malformed!-0123456789"].map(str::to_owned);
    let tokens = [[created, registered, rotated, mistyped].as_slice(), &others].concat();
    for is_revoked in [false, true] {
        for token in &tokens {
            let mut responses = vec![HttpClient::new(address).with_token(token).get("/v1/pets")];
            // The HTTP library refuses these requests, and could log what it received.
            let start = format!("GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
            for rest in [
                "\r\n",
                "Host: a\r\n broken\r\n\r\n",
                "Content-Length: -1\r\n\r\n",
                "\0\r\n\r\n",
            ] {
                let mut connection = RawConnection::open(address);
                connection.send(format!("{start}{rest}"));
                responses.push(connection.response());
                responses[responses.len() - 1].assert_status(400);
            }
            texts.extend(responses.iter().map(|response| {
                (
                    format!("a response, revoked: {is_revoked}"),
                    format!("{}{}", response.head, response.text()),
                )
            }));
        }
        if !is_revoked {
            let exited = keys(&space, &["revoke", &id])
                .env("ANIMAL_STORE_LOG__FILTER", "trace")
                .run();
            assert_eq!(exited.code, Some(0), "{exited:?}");
            texts.push(("revoke".to_owned(), exited.output()));
        }
    }
    let command_line =
        fs::read_to_string(format!("/proc/{}/cmdline", running.pid())).expect("the process runs");
    texts.push(("a process list".to_owned(), command_line));
    let exited = running.terminate();
    assert!(
        exited
            .events()
            .iter()
            .any(|event| event["level"] == "TRACE"),
        "the filter has no effect"
    );
    texts.push(("the log of the instance".to_owned(), exited.output()));

    assert!(texts.len() > 70, "{}", texts.len());
    for (origin, text) in &texts {
        for token in &tokens {
            assert!(
                !text.contains(&token[..20]),
                "{origin} contains {token}: {text}"
            );
        }
    }
}
