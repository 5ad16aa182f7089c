//! A connection ends only after a response that says so, whatever its requests are.

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};

use crate::prelude::{TestApp, fields, get, pet, response_to};

/// A request, with its method.
fn requests() -> impl Strategy<Value = (&'static str, String)> {
    let body = pet("Rex");
    let length = body.len();
    let bodies = vec![
        "\r\n".to_owned(),
        "Content-Length: 0\r\n\r\n".to_owned(),
        format!("Content-Length: {length}\r\n\r\n{body}"),
        format!(
            "Transfer-Encoding: chunked\r\n\r\n{length:x};a=b\r\n{body}\r\n0\r\nTrailer: a\r\n\r\n"
        ),
        // An invalid chunk, and a body that is too large.
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\n".to_owned(),
        "Content-Length: 99999\r\n\r\n".to_owned(),
    ];
    let methods = select(vec!["GET", "HEAD", "POST", "PUT", "OPTIONS", "X-UNKNOWN"]);
    let targets = select(vec![
        "/v1/pets?limit=1",
        "/v1/pets",
        "/v1/pets/0",
        "/openapi.json",
        "/nowhere",
        "*",
    ]);
    let versions = select(vec!["1.1", "1.1", "1.0"]);
    let connections = select(vec![
        "",
        "Connection: keep-alive\r\n",
        "Connection: close\r\n",
        "Connection: upgrade\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\n",
        "Connection: keep-alive, upgrade\r\n",
        "Connection: TE, trailers\r\n",
        "Connection: upgrade\r\nConnection: keep-alive\r\n",
    ]);
    let upgrades = select(vec![
        "",
        "",
        "Upgrade: h2c\r\n",
        "Upgrade: websocket\r\n",
        "Upgrade: TLS/1.0, websocket\r\n",
    ]);
    let expectations = select(vec![
        "",
        "Expect: 100-continue\r\n",
        "Expect: 200-ok\r\n",
        "Expect: 100-Continue, x\r\n",
    ]);
    let codings = select(vec!["", "TE: trailers\r\n", "TE: chunked, gzip;q=0.5\r\n"]);
    let line = (methods, targets, versions);
    let lines = (connections, upgrades, expectations, codings, select(bodies));
    (line, lines).prop_map(
        |((method, target, version), (connection, upgrade, expectation, coding, body))| {
            let line = format!("{method} {target} HTTP/{version}\r\n");
            let fields = fields() + "Content-Type: application/json\r\n";
            let request = format!("{line}{fields}{connection}{upgrade}{expectation}{coding}{body}");
            (method, request)
        },
    )
}

#[test]
fn a_connection_ends_only_after_a_response_that_says_so() {
    let app = TestApp::start();
    let mut runner = TestRunner::new(Config {
        cases: 600,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&vec(requests(), 1..4), |requests| {
        let mut connection = app.connect();
        for (method, request) in requests {
            connection.send(&request);
            let response = loop {
                let response = response_to(method, &mut connection);
                if response.status != 100 {
                    break response;
                }
            };
            let option = response.header("Connection");
            prop_assert_ne!(option, Some("upgrade"), "{:?}", response);
            let is_last = response.head.starts_with("HTTP/1.0 ") && option.is_none();
            if response.closes() || is_last {
                connection.finish_sending();
                connection.assert_closed();
                return Ok(());
            }
        }
        connection.send(get("/v1/pets/0"));
        connection.response().assert_status(404);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
