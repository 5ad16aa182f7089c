//! A connection ends only after a response that says so, whatever its requests are.

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};

use crate::prelude::{TestApp, fields, get, pet, response_to};

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "OPTIONS", "X-UNKNOWN"];
const TARGETS: [&str; 6] = [
    "/v1/pets?limit=1",
    "/v1/pets",
    "/v1/pets/0",
    "/openapi.json",
    "/nowhere",
    "*",
];
const VERSIONS: [&str; 3] = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"];
const CONNECTIONS: [&str; 8] = [
    "",
    "Connection: keep-alive\r\n",
    "Connection: close\r\n",
    "Connection: upgrade\r\n",
    "Connection: Upgrade, HTTP2-Settings\r\n",
    "Connection: keep-alive, upgrade\r\n",
    "Connection: TE, trailers\r\n",
    "Connection: upgrade\r\nConnection: keep-alive\r\n",
];
const UPGRADES: [&str; 5] = [
    "",
    "",
    "Upgrade: h2c\r\n",
    "Upgrade: websocket\r\n",
    "Upgrade: TLS/1.0, websocket\r\n",
];
const EXPECTATIONS: [&str; 4] = [
    "",
    "Expect: 100-continue\r\n",
    "Expect: 200-ok\r\n",
    "Expect: 100-Continue, x\r\n",
];
const CODINGS: [&str; 3] = ["", "TE: trailers\r\n", "TE: chunked, gzip;q=0.5\r\n"];

/// The framing of a body.
#[derive(Debug, Clone, Copy)]
enum Body {
    None,
    Empty,
    Length,
    Chunked,
    Malformed,
    TooLarge,
}

impl Body {
    const ALL: [Self; 6] = [
        Self::None,
        Self::Empty,
        Self::Length,
        Self::Chunked,
        Self::Malformed,
        Self::TooLarge,
    ];

    /// The end of the head, and the body.
    fn bytes(self) -> String {
        let body = pet("Rex");
        let length = body.len();
        match self {
            Self::None => "\r\n".to_owned(),
            Self::Empty => "Content-Length: 0\r\n\r\n".to_owned(),
            Self::Length => format!("Content-Length: {length}\r\n\r\n{body}"),
            Self::Chunked => format!(
                "Transfer-Encoding: chunked\r\n\r\n{length:x};a=b\r\n{body}\r\n0\r\nTrailer: a\r\n\r\n"
            ),
            Self::Malformed => "Transfer-Encoding: chunked\r\n\r\n0\r\n\n".to_owned(),
            Self::TooLarge => "Content-Length: 99999\r\n\r\n".to_owned(),
        }
    }
}

/// A request, with its method.
fn requests() -> impl Strategy<Value = (&'static str, String)> {
    let line = (
        select(&METHODS[..]),
        select(&TARGETS[..]),
        select(&VERSIONS[..]),
    );
    let lines = (
        select(&CONNECTIONS[..]),
        select(&UPGRADES[..]),
        select(&EXPECTATIONS[..]),
        select(&CODINGS[..]),
        select(&Body::ALL[..]),
    );
    (line, lines).prop_map(
        |((method, target, version), (connection, upgrade, expectation, coding, body))| {
            let head = format!(
                "{method} {target} {version}\r\n{}Content-Type: application/json\r\n",
                fields()
            );
            let body = body.bytes();
            let request = format!("{head}{connection}{upgrade}{expectation}{coding}{body}");
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
