//! The keys of the API. The files of `http.tls` are read with the configuration: a start, `check-config` and SIGHUP
//! report a file that cannot be used as an error of its key. A certificate that has expired is a warning, so that a
//! renewal is possible while the service runs.

use std::{
    net::SocketAddr, num::NonZeroU32, path::PathBuf, sync::Arc, thread::available_parallelism,
    time::Duration,
};

use animal_store_adapters_http::{
    AllowedOrigins, ApiSettings, AuthFailureLimiter, ConnectionLimits, CurrentTlsIdentity,
    KeyRateLimiter, Limits, PublicUrl, RateLimit, TlsFiles, TlsFilesError, TrustedProxies,
    reloaded,
};

use super::{
    declaration::{address, duration, keys, number, one_of, optional, parsed},
    values::Values,
};

const KEEP_ALIVE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_hours(1);
const MILLION: NonZeroU32 = NonZeroU32::new(1_000_000).expect("not 0");
/// More than the timeouts of a head and of a body. The answer timeout must be longer than all three together.
const OTHER_TIMEOUTS: Duration = Duration::from_secs(45);
/// The maximum of actix.
const MAX_WORKERS: usize = 512;

/// Returns the address of the API, its settings, with the defaults of the log and of traces, and whether it serves the
/// deprecated operation.
pub(super) fn read(values: &mut Values) -> (SocketAddr, ApiSettings, bool) {
    let defaults = ConnectionLimits::default();
    let limit = || optional(number(NonZeroU32::MIN..=MILLION));
    keys! { values,
        /// Address of the API, with a port; 0: a free one. Not used if systemd passes a socket.
        listen = value("http.listen", "127.0.0.1:8080", address);
        /// Number of worker threads. `auto`: one per CPU.
        workers = value("http.workers", "auto", workers);
        /// Maximum number of open connections. Beyond it, one that is idle or slow is closed; if there is none,
        /// further ones wait. The process raises its limit of open files, or serves fewer.
        max_connections = value("http.max_connections", "10000", number(1..=1_000_000));
        /// Maximum number of requests in flight, half of them of one API key. Further ones get 503 `overloaded`. A
        /// request is in flight once its body has arrived.
        max_in_flight = value("http.max_in_flight", "2000", number(1..=1_000_000));
        /// Maximum size of a request body in bytes. Larger ones get 413.
        max_body_bytes = value("http.max_body_bytes", "16384", number(64..=1024 * 1024));
        /// Time after which an idle connection is closed.
        keep_alive = value("http.keep_alive", "75s", duration(KEEP_ALIVE));
        /// Origins of web pages that may use the API, such as `https://shop.example`: a list, or a text with
        /// commas. `*`: every origin. SIGHUP reloads it.
        origins = list("http.cors_origins", AllowedOrigins::parse);
        /// URL of `/v1` as clients see it, such as `https://shop.example/v1`: links are absolute then. Unset, they are
        /// relative, and valid behind any proxy.
        public_url = value("http.public_url", "", |text| Ok(text.to_owned()));
        /// IP addresses and networks, such as `10.0.0.0/8`, of proxies: a list, or a text with commas. The client
        /// of their requests is the rightmost untrusted address in `X-Forwarded-For`.
        proxies = list("http.trusted_proxies", TrustedProxies::parse);
        /// Maximum number of requests of one API key per second. Further ones get 429 `rate_limited`. SIGHUP reloads
        /// it.
        per_second = value("http.rate_limit.per_second", "", limit());
        /// Maximum number of requests of an API key at once after a pause. Empty: as `http.rate_limit.per_second`,
        /// which it requires. SIGHUP reloads it.
        burst = value("http.rate_limit.burst", "", limit());
        /// Maximum number of 401 responses to one client address, or IPv6 network of 64 bits, per minute. Its
        /// further requests get 429 `rate_limited`. Behind a proxy, set `http.trusted_proxies` first. SIGHUP reloads
        /// it.
        max_auth_failures_per_minute = value("http.auth_failures.per_minute", "", limit());
        /// `serve` the deprecated operation `getPet`, or respond to it with 410 `gone`.
        serves_get_pet = value("http.deprecated_get", "serve", one_of([("serve", true), ("gone", false)]));
    }
    values.require(
        burst.is_none() || per_second.is_some(),
        &["http.rate_limit.burst", "http.rate_limit.per_second"],
        "requires http.rate_limit.per_second",
    );
    let public_url = (!public_url.is_empty()).then(|| PublicUrl::parse(&public_url));
    let public_url = values
        .checked("http.public_url", public_url.transpose())
        .flatten();
    let tls = read_tls(values);
    let rate_limit = per_second.map(|per_second| RateLimit {
        per_second,
        burst: burst.unwrap_or(per_second),
    });
    let connections = ConnectionLimits {
        workers,
        max_connections,
        max_body_bytes,
        keep_alive,
        answer_timeout: defaults.answer_timeout.max(keep_alive + OTHER_TIMEOUTS),
        ..defaults
    };
    let limits = Limits {
        connections,
        max_in_flight,
        max_in_flight_per_key: (max_in_flight / 2).max(1),
        rate_limit: reloaded(rate_limit.map(KeyRateLimiter::new)),
        auth_failures: reloaded(max_auth_failures_per_minute.map(AuthFailureLimiter::new)),
    };
    let (origins, errors_only) = (reloaded(origins), Arc::default());
    (
        listen,
        ApiSettings {
            limits,
            tls,
            origins,
            public_url,
            proxies,
            sample_ratio: None,
            errors_only,
        },
        serves_get_pet,
    )
}

/// Reads the files, if they are set. Adds an error if one of them cannot be used.
pub(crate) fn read_tls(values: &mut Values) -> Option<CurrentTlsIdentity> {
    let path = || optional(parsed("a path", |_: &PathBuf| true));
    keys! { values,
        /// PEM file with the certificate of the API and those of its intermediate authorities: the API is then
        /// served by HTTPS only. Requires `http.tls.key_file`. A change of the files is noticed within seconds.
        certificate = value("http.tls.cert_file", "", path());
        /// PEM file with the private key of the certificate, not encrypted.
        private_key = value("http.tls.key_file", "", path());
        /// PEM file with authorities. Clients then need a certificate that one of them has signed, beside an API
        /// key.
        client_authorities = value("http.tls.client_ca_file", "", path());
    }
    let [cert, key, client_ca] = [
        "http.tls.cert_file",
        "http.tls.key_file",
        "http.tls.client_ca_file",
    ];
    let is_pair = certificate.is_some() == private_key.is_some();
    values.require(
        is_pair,
        &[cert, key],
        "and http.tls.key_file must be set together",
    );
    let is_complete = client_authorities.is_none() || certificate.is_some();
    values.require(
        is_complete,
        &[client_ca, cert],
        "requires http.tls.cert_file",
    );
    for path in [&certificate, &client_authorities].into_iter().flatten() {
        values.judge(path, false);
    }
    if let Some(path) = &private_key {
        values.judge(path, true);
    }
    let loaded = TlsFiles {
        certificate: certificate?,
        private_key: private_key?,
        client_authorities,
    }
    .load();
    let name = match loaded {
        Err(TlsFilesError::PrivateKey(_)) => key,
        Err(TlsFilesError::ClientAuthorities(_)) => client_ca,
        _ => cert,
    };
    let loaded = loaded.map_err(|error| format!("names a file that cannot be used: {error}"));
    let identity = values.checked(name, loaded)?;
    if identity.remaining().is_none() {
        values.warnings.push(format!(
            "{} has expired: clients refuse it",
            values.label(cert)
        ));
    }
    if identity.has_expired_authority() {
        values.warnings.push(format!(
            "{} contains an authority that has expired: its certificates are still accepted",
            values.label(client_ca)
        ));
    }
    Some(CurrentTlsIdentity::new(identity))
}

fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_WORKERS));
    }
    number(1..=MAX_WORKERS)(text).map_err(|expected| format!("auto or {expected}"))
}
