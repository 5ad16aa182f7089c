//! The life cycle of API keys at the log level `trace`, then a search for tokens in every output.

use crate::{keys::keys, prelude::*};

/// The HTTP library refuses a request whose head ends so, and could log what it received.
const REFUSED: [&str; 4] = [
    "\r\n",
    "Host: a\r\n broken\r\n\r\n",
    "Content-Length: -1\r\n\r\n",
    "\0\r\n\r\n",
];

#[test]
fn no_token_is_in_a_log_an_error_a_list_a_process_list_or_redis() {
    let redis = RedisServer::start();
    let mut running = Program::with_redis(&redis.url())
        .set("log.filter", "trace")
        .start();
    let address = running.address();
    // Texts to search, each with its origin.
    let mut texts = vec![];
    let mut run = |line: &str, input: &str| -> Exited {
        let program = keys(&redis, line).set("log.filter", "trace");
        let exited = program.stdin(input).succeed();
        texts.push((line.to_owned(), exited.stderr.join("\n")));
        exited
    };
    let created = NewKey::printed(&run("create --label shop", ""));
    let registered = "registered-token-0123456789".to_owned();
    run("create --label old --token-stdin", &registered);
    let rotated = NewKey::printed(&run(&format!("rotate {}", created.id), "")).token;
    let lists = ["list", "list --json"].map(|line| run(line, "").stdout.join("\n"));
    texts.extend(lists.map(|list| ("a list".to_owned(), list)));
    for name in redis.run("KEYS *").lines() {
        let stored = if name.ends_with(":changes") {
            redis.run(&format!("ZRANGE {name} 0 -1"))
        } else {
            redis.run(&format!("HGETALL {name}"))
        };
        texts.push((name.to_owned(), stored));
    }

    let mistyped = format!("{}x", &created.token[..60]);
    let never_seen = "never-seen-0123456789".to_owned();
    let malformed = "malformed!-0123456789".to_owned();
    let known = [created.token, registered, rotated];
    let tokens = [&known[..], &[mistyped, never_seen, malformed]].concat();
    for is_revoked in [false, true] {
        for token in &tokens {
            let client = HttpClient::new(address).with_token(token);
            let mut responses = vec![client.get("/v1/pets")];
            for rest in REFUSED {
                let mut connection = RawConnection::open(address);
                let start = "GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer";
                connection.send(format!("{start} {token}\r\n{rest}"));
                let refused = connection.response();
                refused.assert_status(400);
                responses.push(refused);
            }
            for response in responses {
                let origin = format!("a response, revoked: {is_revoked}");
                texts.push((origin, format!("{}{}", response.head, response.text())));
            }
        }
        if !is_revoked {
            let revoke = keys(&redis, &format!("revoke {}", created.id));
            let exited = revoke.set("log.filter", "trace").succeed();
            texts.push(("revoke".to_owned(), exited.output()));
        }
    }
    let command_line = fs::read_to_string(format!("/proc/{}/cmdline", running.pid()));
    let command_line = command_line.expect("the process runs");
    texts.push(("a process list".to_owned(), command_line));
    let exited = running.terminate();
    // The filter has an effect.
    exited.assert_has("TRACE");
    texts.push(("the log of the instance".to_owned(), exited.output()));

    assert!(texts.len() > 70, "{}", texts.len());
    for (origin, text) in &texts {
        for token in &tokens {
            let part = &token[..20];
            assert!(!text.contains(part), "{origin} has {token}: {text}");
        }
    }
}
