pub(super) mod tls;

use std::{net::SocketAddr, num::NonZeroU32, thread::available_parallelism, time::Duration};

use animal_store_adapters_http::{AllowedOrigins, Limits, OriginError, RateLimit, TrustedProxies};

use self::tls::TlsConfig;
use super::{
    key::{Key, keys},
    values::{Values, address, duration, number, one_of, optional},
};

keys! {
    LISTEN: new("http.listen", "127.0.0.1:8080",
        "Address of the API: an IP address with a port. Port 0 selects a free port. Not used if systemd passes a \
         socket; see [systemd](operations/run.md#systemd).");
    WORKERS: new("http.workers", "auto", "Number of worker threads. `auto`: one per CPU.");
    MAX_CONNECTIONS: new("http.max_connections", "10000",
        "Maximum number of open connections. Beyond it, the connection that has had no request for the longest time is \
         closed; if there is none, further connections wait. The process raises its limit of open files to match; if \
         it cannot, it serves fewer.");
    MAX_UNSENT_BYTES: new("http.max_unsent_bytes", "67108864",
        "Maximum number of bytes that responses of more than 8 KiB hold while clients read them. Beyond it, the \
         connection that has been sending for the longest time is closed.");
    MAX_IN_FLIGHT: new("http.max_in_flight", "2000",
        "Maximum number of requests in flight. Further requests get 503 `overloaded` at once. A request whose body is \
         still arriving is not in flight; the memory of these bodies is bounded by `http.max_connections` times \
         `http.max_body_bytes`.");
    MAX_IN_FLIGHT_PER_KEY: new("http.max_in_flight_per_key", "",
        "Maximum number of requests of one API key, those whose body is still arriving included. Further requests of \
         the key get 503 `overloaded`. Each worker has an equal share, at least 1. Empty: half of \
         `http.max_in_flight`.");
    MAX_BODY_BYTES: new("http.max_body_bytes", "16384",
        "Maximum size of a request body in bytes. Larger bodies get 413.");
    HEAD_TIMEOUT: new("http.head_timeout", "5s",
        "Timeout for the head of the first request of a connection. After it: 408.");
    BODY_TIMEOUT: new("http.body_timeout", "10s", "Timeout for the body of a request. After it: 408.");
    KEEP_ALIVE: new("http.keep_alive", "75s", "Time after which an idle connection is closed.");
    ANSWER_TIMEOUT: new("http.answer_timeout", "2m",
        "Time after which a connection is closed, counted from the last byte that was sent to it. Must be longer than \
         `http.head_timeout`, `http.body_timeout` and `http.keep_alive` together.");
    CORS_ORIGINS: new("http.cors_origins", "",
        "Origins of the web pages that may use the API from a browser, such as `https://shop.example`: a list, or a \
         text with commas. `*`: every origin. Empty: none.");
    TRUSTED_PROXIES: new("http.trusted_proxies", "",
        "Proxies in front of the service, as IP addresses and networks such as `10.0.0.0/8`: a list, or a text with \
         commas. For a request from one of them, `client` in the log, and the address for `http.auth_failures`, is the \
         rightmost untrusted address in `X-Forwarded-For`. Empty: none.");
    RATE_LIMIT_PER_SECOND: new("http.rate_limit.per_second", "",
        "Maximum number of requests of one API key per second, over all workers of the instance. Further requests of \
         the key get 429 `rate_limited`. Empty: no limit.");
    RATE_LIMIT_BURST: new("http.rate_limit.burst", "",
        "Maximum number of requests that an API key can send at once after a pause. Requires \
         `http.rate_limit.per_second`. Empty: the value of that key.");
    AUTH_FAILURES_PER_MINUTE: new("http.auth_failures.per_minute", "",
        "Maximum number of failed authentications (401) of one client address per minute; an IPv6 network of 64 bits \
         counts as one address. Until one of them no longer counts, every request from the address gets 429 \
         `rate_limited`. The address is `client` in the log: behind a proxy, set `http.trusted_proxies` first. Empty: \
         no limit.");
    DEPRECATED_GET: new("http.deprecated_get", "serve",
        "`serve`: serve the deprecated operation `getPet`. `gone`: respond to it with 410 `gone`.");
}

#[derive(Debug)]
pub(crate) struct HttpConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) limits: Limits,
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) cors_origins: AllowedOrigins,
    pub(crate) trusted_proxies: TrustedProxies,
    /// `false`: the deprecated operation is 410.
    pub(crate) serves_get_pet: bool,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_hours(1);
const MILLION: NonZeroU32 = NonZeroU32::new(1_000_000).expect("not 0");

impl HttpConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        let listen = values.read(&LISTEN, address);
        let workers = values.read(&WORKERS, workers);
        let max_connections = values.read(&MAX_CONNECTIONS, number(1..=1_000_000));
        let max_unsent_bytes = values.read(&MAX_UNSENT_BYTES, number(1024 * 1024..=usize::MAX));
        let max_in_flight = values.read(&MAX_IN_FLIGHT, number(1..=1_000_000));
        let max_in_flight_per_key = values.read(&MAX_IN_FLIGHT_PER_KEY, optional(number(1..=1_000_000)));
        let max_in_flight_per_key = max_in_flight_per_key.unwrap_or_else(|| (max_in_flight / 2).max(1));
        let max_body_bytes = values.read(&MAX_BODY_BYTES, number(64..=1024 * 1024));
        let head_timeout = values.read(&HEAD_TIMEOUT, duration(MILLISECOND..=HOUR));
        let body_timeout = values.read(&BODY_TIMEOUT, duration(MILLISECOND..=HOUR));
        let keep_alive = values.read(&KEEP_ALIVE, duration(MILLISECOND..=HOUR));
        let answer_timeout = values.read(&ANSWER_TIMEOUT, duration(MILLISECOND..=24 * HOUR));
        values.require(
            answer_timeout > head_timeout + body_timeout + keep_alive,
            &[&ANSWER_TIMEOUT, &HEAD_TIMEOUT, &BODY_TIMEOUT, &KEEP_ALIVE],
            "must be longer than http.head_timeout, http.body_timeout and http.keep_alive together",
        );
        let cors_origins = cors_origins(values);
        let trusted_proxies = trusted_proxies(values);
        let rate_limit = rate_limit(values);
        let auth_failures = values.read(&AUTH_FAILURES_PER_MINUTE, optional(number(NonZeroU32::MIN..=MILLION)));
        let serves_get_pet = values.read(&DEPRECATED_GET, one_of(&[("serve", true), ("gone", false)]));
        let handshake_timeout = values.read(&tls::HANDSHAKE_TIMEOUT, duration(MILLISECOND..=HOUR));
        let tls = TlsConfig::read(values);
        let limits = Limits {
            workers,
            max_connections,
            max_unsent_bytes,
            max_in_flight,
            max_in_flight_per_key,
            rate_limit,
            max_auth_failures_per_minute: auth_failures,
            max_body_bytes,
            handshake_timeout,
            head_timeout,
            body_timeout,
            keep_alive,
            answer_timeout,
        };
        Self { listen, limits, tls, cors_origins, trusted_proxies, serves_get_pet }
    }
}

impl HttpConfig {
    /// Whether other machines can connect to this address without TLS, and no proxy that could have it is named.
    pub(crate) fn is_unencrypted(&self, address: SocketAddr) -> bool {
        !address.ip().is_loopback() && self.tls.is_none() && self.trusted_proxies.is_empty()
    }
}

fn cors_origins(values: &mut Values) -> AllowedOrigins {
    let items = values.read_list(&CORS_ORIGINS);
    if items == ["*"] {
        return AllowedOrigins::Any;
    }
    let mut origins = Vec::new();
    for item in items {
        let expected = match item.parse() {
            Ok(origin) => {
                origins.push(origin);
                continue;
            }
            Err(OriginError::NotAnOrigin) => "must contain origins such as https://shop.example".to_owned(),
            Err(OriginError::WrittenAs(written)) => format!("must contain {written:?}, as browsers send it"),
        };
        values.add_error(&CORS_ORIGINS, &format!("{expected}, not {item:?}"));
    }
    AllowedOrigins::These(origins)
}

fn trusted_proxies(values: &mut Values) -> TrustedProxies {
    TrustedProxies::parse(&values.read_list(&TRUSTED_PROXIES)).unwrap_or_else(|error| {
        values.add_error(&TRUSTED_PROXIES, &error.to_string());
        TrustedProxies::default()
    })
}

fn rate_limit(values: &mut Values) -> Option<RateLimit> {
    let per_second = values.read(&RATE_LIMIT_PER_SECOND, optional(number(NonZeroU32::MIN..=MILLION)));
    let burst = values.read(&RATE_LIMIT_BURST, optional(number(NonZeroU32::MIN..=MILLION)));
    values.require(
        burst.is_none() || per_second.is_some(),
        &[&RATE_LIMIT_BURST, &RATE_LIMIT_PER_SECOND],
        "requires http.rate_limit.per_second",
    );
    per_second.map(|per_second| RateLimit { per_second, burst: burst.unwrap_or(per_second) })
}

fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(available_parallelism().map_or(1, usize::from).min(MAX_WORKERS));
    }
    number(1..=MAX_WORKERS)(text).map_err(|expected| format!("auto or {expected}"))
}

/// The maximum of actix.
const MAX_WORKERS: usize = 512;
