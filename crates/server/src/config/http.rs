//! The settings of the API. A certificate that has expired is a warning, so that a renewal is possible while the service
//! runs.

use std::{
    net::SocketAddr, num::NonZeroU32, ops::RangeInclusive, thread::available_parallelism,
    time::Duration,
};

use animal_store_adapters_http::{
    AllowedOrigins, ApiSettings, PublicUrl, RateLimit, TrustedProxies,
};
use animal_store_http1::{ConnectionLimits, TlsFiles, TlsFilesError, TlsIdentity};
use animal_store_settings::{
    Setting, Values,
    parsers::{Parsed, address, duration, number, one_of, optional, path},
};

pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "http.listen",
        "127.0.0.1:8080",
        "Address of the API, with a port; 0: a free one. Not used if systemd passes a socket.",
    ),
    Setting::new(
        "http.workers",
        "auto",
        "Number of worker threads. `auto`: one per CPU.",
    ),
    Setting::new(
        "http.max_connections",
        "10000",
        "Maximum number of open connections. Beyond it, one that is idle or slow is closed; if there is none, \
         further ones wait. The process raises its limit of open files, or serves fewer.",
    ),
    Setting::new(
        "http.max_in_flight",
        "2000",
        "Maximum number of requests in flight, half of them of one API key. Further ones get 503 `overloaded`. A \
         request is in flight once its body has arrived.",
    ),
    Setting::new(
        "http.max_body_bytes",
        "16384",
        "Maximum size of a request body in bytes. Larger ones get 413.",
    ),
    Setting::new(
        "http.keep_alive",
        "75s",
        "Time after which an idle connection is closed.",
    ),
    Setting::new(
        "http.cors_origins",
        "",
        "Origins of web pages that may use the API, such as `https://shop.example`: a list, or a text with commas. \
         `*`: every origin. SIGHUP reloads it.",
    )
    .reloaded(),
    Setting::new(
        "http.public_url",
        "",
        "URL of `/v1` as clients see it, such as `https://shop.example/v1`: links are absolute then. Unset, they are \
         relative, and valid behind any proxy.",
    ),
    Setting::new(
        "http.trusted_proxies",
        "",
        "IP addresses and networks, such as `10.0.0.0/8`, of proxies: a list, or a text with commas. The client of \
         their requests is the rightmost untrusted address in `X-Forwarded-For`.",
    ),
    Setting::new(
        "http.rate_limit.per_second",
        "",
        "Maximum number of requests of one API key per second. Further ones get 429 `rate_limited`. SIGHUP reloads it.",
    )
    .reloaded(),
    Setting::new(
        "http.rate_limit.burst",
        "",
        "Maximum number of requests of an API key at once after a pause. Empty: as `http.rate_limit.per_second`, \
         which it requires. SIGHUP reloads it.",
    )
    .reloaded(),
    Setting::new(
        "http.auth_failures.per_minute",
        "",
        "Maximum number of 401 responses to one client address, or IPv6 network of 64 bits, at once, and per minute \
         after that. Its further requests get 429 `rate_limited`. Behind a proxy, set `http.trusted_proxies` first. \
         SIGHUP reloads it.",
    )
    .reloaded(),
    Setting::new(
        "http.deprecated_get",
        "serve",
        "`serve` the deprecated operation `getPet`, or respond to it with 410 `gone`.",
    ),
    Setting::new(
        CERTIFICATE,
        "",
        "PEM file with the certificate of the API and those of its intermediate authorities: the API is then served \
         by HTTPS only. Requires `http.tls.key_file`. A change of the files is noticed within seconds.",
    ),
    Setting::new(
        PRIVATE_KEY,
        "",
        "PEM file with the private key of the certificate, not encrypted.",
    ),
    Setting::new(
        CLIENT_AUTHORITIES,
        "",
        "PEM file with authorities. Clients then need a certificate that one of them has signed, beside an API key.",
    ),
];

const CERTIFICATE: &str = "http.tls.cert_file";
const PRIVATE_KEY: &str = "http.tls.key_file";
const CLIENT_AUTHORITIES: &str = "http.tls.client_ca_file";

const KEEP_ALIVE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(1);
const MILLION: NonZeroU32 = NonZeroU32::new(1_000_000).expect("not 0");
/// More threads than any machine needs.
const MAX_WORKERS: usize = 512;

/// The section `http`.
#[derive(Debug)]
pub(crate) struct HttpConfig {
    pub(crate) listen: SocketAddr,
    /// Without what the sections `log` and `traces` set.
    pub(super) api: ApiSettings,
    pub(super) tls: Option<TlsFiles>,
}

impl HttpConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        Self {
            listen: read_listen(values),
            api: read_api(values),
            tls: read_tls(values),
        }
    }
}

/// Returns the address of the API, unless a socket replaces it.
pub(super) fn read_listen(values: &mut Values) -> SocketAddr {
    values.get("http.listen", address)
}

fn read_api(values: &mut Values) -> ApiSettings {
    let origins = values.list("http.cors_origins", AllowedOrigins::parse);
    let proxies = values.list("http.trusted_proxies", TrustedProxies::parse);
    let max_in_flight = values.get("http.max_in_flight", number(1..=1_000_000));
    let deprecated = one_of(&[("serve", true), ("gone", false)]);
    ApiSettings {
        connections: read_connections(values),
        max_in_flight,
        max_in_flight_per_key: (max_in_flight / 2).max(1),
        rate_limit: read_rate_limit(values),
        auth_failures: values.get("http.auth_failures.per_minute", limit),
        origins: origins.flatten(),
        serves_get_pet: values.get("http.deprecated_get", deprecated),
        public_url: read_public_url(values),
        proxies: proxies.unwrap_or_default(),
        ..ApiSettings::default()
    }
}

fn read_connections(values: &mut Values) -> ConnectionLimits {
    ConnectionLimits {
        workers: values.get("http.workers", workers),
        max_connections: values.get("http.max_connections", number(1..=1_000_000)),
        max_body_bytes: values.get("http.max_body_bytes", number(64..=1024 * 1024)),
        keep_alive: values.get("http.keep_alive", duration(KEEP_ALIVE)),
        ..ConnectionLimits::default()
    }
}

fn read_rate_limit(values: &mut Values) -> Option<RateLimit> {
    let per_second = values.get("http.rate_limit.per_second", limit);
    let burst = values.get("http.rate_limit.burst", limit);
    values.require(
        burst.is_none() || per_second.is_some(),
        &["http.rate_limit.burst", "http.rate_limit.per_second"],
        "requires http.rate_limit.per_second",
    );
    per_second.map(|per_second| RateLimit {
        per_second,
        burst: burst.unwrap_or(per_second),
    })
}

fn read_public_url(values: &mut Values) -> Option<PublicUrl> {
    let text = values.text("http.public_url");
    if text.is_empty() {
        return None;
    }
    let url = PublicUrl::parse(text);
    values.check("http.public_url", url)
}

fn limit(text: &str) -> Parsed<Option<NonZeroU32>> {
    optional(number(NonZeroU32::MIN..=MILLION))(text)
}

/// Reads the section for its certificate alone. `None` without one.
pub(crate) fn read_tls_identity(values: &mut Values) -> Option<TlsIdentity> {
    let http = HttpConfig::read(values);
    open_tls(values, http.tls.as_ref())
}

/// Reads the certificate, its private key, and the authorities of clients, if they are set.
pub(super) fn open_tls(values: &mut Values, files: Option<&TlsFiles>) -> Option<TlsIdentity> {
    let files = files?;
    values.judge(&files.certificate, false);
    values.judge(&files.private_key, true);
    if let Some(authorities) = &files.client_authorities {
        values.judge(authorities, false);
    }
    let loaded = files.load();
    let name = match loaded {
        Err(TlsFilesError::PrivateKey(_)) => PRIVATE_KEY,
        Err(TlsFilesError::ClientAuthorities(_)) => CLIENT_AUTHORITIES,
        _ => CERTIFICATE,
    };
    let loaded = loaded.map_err(|error| format!("names a file that cannot be used: {error}"));
    let identity = values.check(name, loaded)?;
    if identity.remaining().is_none() {
        values.warn(CERTIFICATE, "has expired: clients refuse it");
    }
    if identity.has_expired_authority() {
        values.warn(
            CLIENT_AUTHORITIES,
            "contains an authority that has expired: its certificates are still accepted",
        );
    }
    Some(identity)
}

fn read_tls(values: &mut Values) -> Option<TlsFiles> {
    let certificate = values.get(CERTIFICATE, optional(path));
    let private_key = values.get(PRIVATE_KEY, optional(path));
    let client_authorities = values.get(CLIENT_AUTHORITIES, optional(path));
    values.require(
        certificate.is_some() == private_key.is_some(),
        &[CERTIFICATE, PRIVATE_KEY],
        "and http.tls.key_file must be set together",
    );
    values.require(
        client_authorities.is_none() || certificate.is_some(),
        &[CLIENT_AUTHORITIES, CERTIFICATE],
        "requires http.tls.cert_file",
    );
    Some(TlsFiles {
        certificate: certificate?,
        private_key: private_key?,
        client_authorities,
    })
}

fn workers(text: &str) -> Parsed<usize> {
    if text == "auto" {
        return Ok(available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_WORKERS));
    }
    number(1..=MAX_WORKERS)(text).map_err(|expected| format!("auto or {expected}"))
}
