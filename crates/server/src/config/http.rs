use std::{net::SocketAddr, thread::available_parallelism, time::Duration};

use animal_store_adapters_http::{AllowedOrigins, Limits, OriginError};

use super::{
    Key,
    values::{Values, address, duration, number},
};

const LISTEN: Key = Key::new("http.listen", "127.0.0.1:8080", "Where clients connect. Port 0 takes a free one.");
const WORKERS: Key = Key::new("http.workers", "auto", "Threads that answer requests; `auto` is one for each CPU.");
const MAX_CONNECTIONS: Key = Key::new(
    "http.max_connections",
    "10000",
    "Connections at a time. Those beyond wait until one ends; the process raises its limit of open files to match.",
);
const MAX_IN_FLIGHT: Key = Key::new(
    "http.max_in_flight",
    "2000",
    "Requests being answered at a time. Those beyond are answered 503 `overloaded` at once.",
);
const MAX_BODY_BYTES: Key =
    Key::new("http.max_body_bytes", "16384", "Bytes of a request body. Larger ones are answered 413.");
const HEAD_TIMEOUT: Key =
    Key::new("http.head_timeout", "5s", "For the head of a connection's first request. Later: 408.");
const BODY_TIMEOUT: Key = Key::new("http.body_timeout", "10s", "For the body of a request. Later: 408.");
const KEEP_ALIVE: Key = Key::new("http.keep_alive", "75s", "How long an idle connection is kept open.");
const ANSWER_TIMEOUT: Key = Key::new(
    "http.answer_timeout",
    "2m",
    "A connection is closed this long after the last byte that was sent to it, whatever it is waiting for. \
     It must be longer than `http.head_timeout`, `http.body_timeout` and `http.keep_alive` together.",
);
const CORS_ORIGINS: Key = Key::new(
    "http.cors_origins",
    "",
    "The origins whose pages may use the interface in a browser, such as `https://shop.example`: a list, or a text with \
     commas. `*` for every origin, empty for none.",
);

pub(super) const KEYS: &[Key] = &[
    LISTEN,
    WORKERS,
    MAX_CONNECTIONS,
    MAX_IN_FLIGHT,
    MAX_BODY_BYTES,
    HEAD_TIMEOUT,
    BODY_TIMEOUT,
    KEEP_ALIVE,
    ANSWER_TIMEOUT,
    CORS_ORIGINS,
];

/// The interface for clients.
#[derive(Debug)]
pub struct HttpConfig {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// How much clients may ask for, and how long they may take over it.
    pub limits: Limits,
    /// Whose pages may use the interface.
    pub cors_origins: AllowedOrigins,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_hours(1);

impl HttpConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let listen = values.read(&LISTEN, address);
        let workers = values.read(&WORKERS, workers);
        let max_connections = values.read(&MAX_CONNECTIONS, number(1..=1_000_000));
        let max_in_flight = values.read(&MAX_IN_FLIGHT, number(1..=1_000_000));
        let max_body_bytes = values.read(&MAX_BODY_BYTES, number(64..=1024 * 1024));
        let head_timeout = values.read(&HEAD_TIMEOUT, duration(MILLISECOND..=HOUR));
        let body_timeout = values.read(&BODY_TIMEOUT, duration(MILLISECOND..=HOUR));
        let keep_alive = values.read(&KEEP_ALIVE, duration(MILLISECOND..=HOUR));
        let answer_timeout = values.read(&ANSWER_TIMEOUT, duration(MILLISECOND..=24 * HOUR));
        let cors_origins = cors_origins(values);
        if let (Some(head), Some(body), Some(idle), Some(answer)) =
            (head_timeout, body_timeout, keep_alive, answer_timeout)
            && answer <= head + body + idle
        {
            values.problem(
                &ANSWER_TIMEOUT,
                "must be longer than http.head_timeout, http.body_timeout and http.keep_alive together",
            );
        }
        Some(Self {
            listen: listen?,
            limits: Limits {
                workers: workers?,
                max_connections: max_connections?,
                max_in_flight: max_in_flight?,
                max_body_bytes: max_body_bytes?,
                head_timeout: head_timeout?,
                body_timeout: body_timeout?,
                keep_alive: keep_alive?,
                answer_timeout: answer_timeout?,
            },
            cors_origins,
        })
    }
}

fn cors_origins(values: &mut Values) -> AllowedOrigins {
    let items = values.read_list(&CORS_ORIGINS);
    if items == ["*"] {
        return AllowedOrigins::Any;
    }
    let mut origins = Vec::new();
    for item in items {
        match item.parse() {
            Ok(origin) => origins.push(origin),
            Err(OriginError::NotAnOrigin) => {
                values.problem(&CORS_ORIGINS, &format!("must hold origins such as https://shop.example, not {item:?}"));
            }
            Err(OriginError::WrittenAs(written)) => {
                values.problem(&CORS_ORIGINS, &format!("must hold {written:?}, as browsers write it, not {item:?}"));
            }
        }
    }
    AllowedOrigins::These(origins)
}

fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(available_parallelism().map_or(1, usize::from).min(MAX_WORKERS));
    }
    number(1..=MAX_WORKERS)(text).map_err(|expected| format!("auto or {expected}"))
}

/// What actix takes.
const MAX_WORKERS: usize = 512;
