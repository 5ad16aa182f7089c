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
    let service = Program::with_redis(&redis.url());
    let mut running = service.set("log.filter", "trace").start();
    let address = running.address();
    let run = |line: &str, input: &str| {
        let program = keys(&redis, line).set("log.filter", "trace");
        program.stdin(input).succeed()
    };
    let registered = "registered-token-0123456789".to_owned();
    let created = run("create --label shop", "");
    let key = NewKey::printed(&created);
    let rotated = run(&format!("rotate {}", key.id), "");
    let mut texts = vec![
        created.stderr.concat(),
        rotated.stderr.concat(),
        run("create --label old --token-stdin", &registered).output(),
        run("list", "").output(),
        run("list --json", "").output(),
        running.proc("cmdline"),
    ];
    for name in redis.run("KEYS *").lines() {
        let read = if name.ends_with(":changes") {
            format!("ZRANGE {name} 0 -1")
        } else {
            format!("HGETALL {name}")
        };
        texts.push(format!("{name} {}", redis.run(&read)));
    }

    let tokens = [
        format!("{}x", &key.token[..60]),
        "never-seen-0123456789".to_owned(),
        "malformed!-0123456789".to_owned(),
        key.token,
        registered,
        NewKey::printed(&rotated).token,
    ];
    // Before the revocation and after it.
    for command in [format!("revoke {}", key.id), "log".to_owned()] {
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
            let received = responses.iter();
            texts.extend(received.map(|response| format!("{}{}", response.head, response.text())));
        }
        texts.push(run(&command, "").output());
    }
    let exited = running.terminate();
    // The filter has an effect.
    exited.assert_has("TRACE");
    texts.push(exited.output());

    assert!(texts.len() > 70, "{}", texts.len());
    for text in &texts {
        for token in &tokens {
            assert!(!text.contains(&token[..20]), "{token} in {text}");
        }
    }
}
