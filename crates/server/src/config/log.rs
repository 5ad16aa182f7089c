use animal_store_adapters_http::{LoggedRequests, RequestLogFilter};
use tracing_subscriber::filter::Targets;

use super::{
    key::{Key, keys},
    values::{Values, one_of},
};

keys! {
    FILTER: new("log.filter", "info,actix_http=off",
        "Log level (`error`, `warn`, `info`, `debug`, `trace`, `off`) and, after commas, levels of modules. \
         `actix_http` reports protocol errors of clients. SIGHUP reloads it.");
    REQUESTS: new("log.requests", "all",
        "Requests of the API that have a line in the log. `all`: every one. `errors`: those with a status of 400 or \
         above. SIGHUP reloads it.");
    FORMAT: new("log.format", "auto", "`text`, `json`, or `auto`: text on a terminal, JSON otherwise.");
}

#[derive(Debug)]
pub(crate) struct LogConfig {
    pub(crate) filter: Targets,
    pub(crate) requests: RequestLogFilter,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Auto,
    Text,
    Json,
}

impl LogConfig {
    /// Names of the keys that can change without a restart.
    pub(crate) const RELOADED: [&str; 2] = [FILTER.name, REQUESTS.name];

    pub(super) fn read(values: &mut Values) -> Self {
        let formats = [("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)];
        let requests = [("all", LoggedRequests::All), ("errors", LoggedRequests::Errors)];
        Self {
            filter: values.read(&FILTER, filter),
            requests: RequestLogFilter::new(values.read(&REQUESTS, one_of(&requests))),
            format: values.read(&FORMAT, one_of(&formats)),
        }
    }
}

/// Requires a level without a module. `Targets` accepts any word as the name of a module, a misspelt level too, and an
/// empty level, as `error`.
fn filter(text: &str) -> Result<Targets, String> {
    let complete = text.split([',', '=']).all(|part| !part.trim().is_empty());
    let filter = text.parse().ok().filter(|filter: &Targets| complete && filter.default_level().is_some());
    filter
        .ok_or_else(|| "a level, and after commas levels of modules, such as info or info,actix_http=error".to_owned())
}
