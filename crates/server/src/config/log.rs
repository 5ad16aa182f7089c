use tracing_subscriber::filter::Targets;

use super::{
    Key,
    values::{Values, one_of},
};

const FILTER: Key = Key::new(
    "log.filter",
    "info,actix_server=warn,actix_http=off",
    "What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`) and, after commas, levels of modules. \
     `actix_http` reports what clients do to the protocol.",
);
const FORMAT: Key = Key::new("log.format", "auto", "`text`, `json`, or `auto`: text on a terminal, JSON otherwise.");

pub(super) const KEYS: &[Key] = &[FILTER, FORMAT];

/// What is logged, and how.
#[derive(Debug)]
pub struct LogConfig {
    /// The levels.
    pub filter: Targets,
    /// The form of a line.
    pub format: LogFormat,
}

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// `Targets` takes any word for the name of a module. So there has to be a level for all the others.
fn filter(text: &str) -> Result<Targets, String> {
    let filter = text.parse().ok().filter(|filter: &Targets| filter.default_level().is_some());
    filter
        .ok_or_else(|| "a level, and after commas levels of modules, such as info or info,actix_http=error".to_owned())
}

impl LogConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let filter = values.read(&FILTER, filter);
        let format = values
            .read(&FORMAT, one_of(&[("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)]));
        Some(Self { filter: filter?, format: format? })
    }
}
