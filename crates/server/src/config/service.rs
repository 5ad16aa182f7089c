//! The settings around the API: the management listener, the log, traces and the shutdown.

use std::{net::SocketAddr, time::Duration};

use animal_store_app::AuditEntry;
use animal_store_settings::{
    Setting, Values,
    parsers::{Parsed, address, duration, one_of, optional, valid},
};
use animal_store_telemetry::{LogFormat, LogSettings};
use tracing_subscriber::filter::Targets;
use url::Url;

pub(super) const MANAGEMENT: &[Setting] = &[Setting::new(
    "management.listen",
    "127.0.0.1:8081",
    "Address of `/live`, `/ready` and `/metrics`, which need no API key. Empty: no management listener.",
)];

pub(super) const LOG: &[Setting] = &[
    Setting::new(
        "log.filter",
        "info,actix_http=off",
        "Log level (`error`, `warn`, `info`, `debug`, `trace`, `off`) and, after commas, levels of modules. \
         `actix_http` reports protocol errors of clients. SIGHUP reloads it.",
    )
    .reloaded(),
    Setting::new(
        "log.requests",
        "all",
        "Requests that have a line in the log: `all`, or `errors`, with a status of 400 or above. SIGHUP reloads it.",
    )
    .reloaded(),
    Setting::new(
        "log.format",
        "auto",
        "`text`, `json`, or `auto`: text on a terminal, JSON otherwise.",
    ),
];

pub(super) const TRACES: &[Setting] = &[
    Setting::new(
        "traces.endpoint",
        "",
        "URL of a collector of traces by OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`.",
    ),
    Setting::new(
        "traces.sample_ratio",
        "0.01",
        "Share of the requests that are traced, from 0 to 1. One whose `traceparent` is not sampled never is.",
    ),
];

pub(super) const SHUTDOWN: &[Setting] = &[
    Setting::new(
        "shutdown.timeout",
        "30s",
        "Time from the first signal to the end of the process. Requests still in flight are cut off, and the exit \
         code is 1. Its last quarter, at most half a second, is reserved for the log.",
    ),
    Setting::new(
        "shutdown.drain_delay",
        "",
        "Time after SIGTERM for which connections are accepted, so that load balancers notice that `/ready` is 503. \
         At most half of `shutdown.timeout`. Empty: `5s` or that half; `0s` with a socket of systemd, in which \
         connections wait.",
    ),
];

/// Returns the address of the management listener, if there is one.
pub(crate) fn read_management(values: &mut Values) -> Option<SocketAddr> {
    values.get("management.listen", optional(address))
}

/// Target of the events about reloads. They pass every filter, so that SIGHUP always has a visible outcome.
pub(crate) const RELOAD_TARGET: &str = "reload";

#[derive(Debug)]
pub(crate) struct LogConfig {
    pub(crate) settings: LogSettings,
    pub(crate) errors_only: bool,
}

impl LogConfig {
    pub(crate) fn read(values: &mut Values) -> Self {
        let formats = one_of(&[
            ("auto", LogFormat::Auto),
            ("text", LogFormat::Text),
            ("json", LogFormat::Json),
        ]);
        let requests = one_of(&[("all", false), ("errors", true)]);
        Self {
            settings: LogSettings {
                filter: values.get("log.filter", filter),
                always: &[AuditEntry::LOG_TARGET, RELOAD_TARGET],
                format: values.get("log.format", formats),
            },
            errors_only: values.get("log.requests", requests),
        }
    }
}

/// Requires a level without a module. `Targets` accepts any word as the name of a module, a misspelt level too, and an
/// empty level, as `error`.
fn filter(text: &str) -> Parsed<Targets> {
    let is_complete = text.split([',', '=']).all(|part| !part.trim().is_empty());
    let expected =
        "a level, and after commas levels of modules, such as info or info,actix_http=error";
    valid(expected, |filter: &Targets| {
        is_complete && filter.default_level().is_some()
    })(text)
}

/// The section `traces`.
#[derive(Debug)]
pub(crate) struct TracesConfig {
    /// The collector, if there is one.
    pub(crate) endpoint: Option<Url>,
    /// Share of the requests that are traced, if there is a collector.
    pub(super) sample_ratio: Option<f64>,
}

impl TracesConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        let ratio = valid("a number from 0 to 1, such as 0.01", |ratio| {
            (0.0..=1.0).contains(ratio)
        });
        let endpoint = values.get("traces.endpoint", optional(endpoint));
        let sample_ratio = values.get("traces.sample_ratio", ratio);
        Self {
            sample_ratio: endpoint.as_ref().map(|_| sample_ratio),
            endpoint,
        }
    }
}

/// Refuses everything that can contain a secret: the URL is shown.
fn endpoint(text: &str) -> Parsed<Url> {
    let expected =
        "a URL such as http://127.0.0.1:4318/v1/traces, without user, password, query and fragment";
    let is_plain = |url: &Url| {
        let is_without_user = url.username().is_empty() && url.password().is_none();
        let is_path = url.query().is_none() && url.fragment().is_none();
        ["http", "https"].contains(&url.scheme()) && is_without_user && is_path
    };
    valid(expected, is_plain)(text)
}

/// The times of a shutdown, most of them from the first signal.
#[derive(Debug, Clone, Copy)]
pub struct ShutdownConfig {
    /// Connections are still accepted for this time after SIGTERM.
    pub(crate) drain_delay: Duration,
    /// The same with an inherited socket, which refuses no connection meanwhile.
    pub(crate) inherited_drain_delay: Duration,
    /// A connection is closed when it was idle for this time.
    pub idle_grace: Duration,
    /// Requests in flight are cut off after this time. The rest is for the log.
    pub(crate) requests_timeout: Duration,
    /// The process ends after this time.
    pub(crate) timeout: Duration,
    /// The log has this time after everything else has ended.
    pub(crate) log_timeout: Duration,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_hours(1);
const DEFAULT_DRAIN_DELAY: Duration = Duration::from_secs(5);
const LOG_TIMEOUT: Duration = Duration::from_millis(500);

impl ShutdownConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        let timeout = values.get("shutdown.timeout", duration(MILLISECOND..=HOUR));
        let delays = optional(duration(Duration::ZERO..=HOUR));
        let drain_delay = values.get("shutdown.drain_delay", delays);
        let fits = drain_delay.is_none_or(|delay| delay <= timeout / 2);
        let names = ["shutdown.drain_delay", "shutdown.timeout"];
        values.require(fits, &names, "must be at most half of shutdown.timeout");
        let log_timeout = LOG_TIMEOUT.min(timeout / 4);
        Self {
            drain_delay: drain_delay.unwrap_or(DEFAULT_DRAIN_DELAY.min(timeout / 2)),
            inherited_drain_delay: drain_delay.unwrap_or_default(),
            idle_grace: Duration::from_secs(1),
            requests_timeout: timeout.saturating_sub(log_timeout),
            timeout,
            log_timeout,
        }
    }
}
