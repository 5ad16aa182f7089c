//! The log: one line per event, as text on a terminal and as JSON otherwise. `docs/logging.md` lists events and fields.
//!
//! **Problem.** The reader of standard output can be slower than the service, and a system call per line costs more CPU
//! than the line itself.
//!
//! **Invariant.** A request never waits for the log. A thread writes the lines in batches ([`batched_writer`]). If its
//! queue is full, lines are dropped and counted, and the count is logged at the end. The end of the process waits for
//! the log only until its deadline ([`service_log`]). An error of standard output is reported on standard error, once.
//! Commands use standard output for their result, so they log to standard error, and fail if a line is lost
//! ([`command_log`]). Audit events, and those of a reload, pass every filter, and no filter logs a span ([`traces`]).
//!
//! **Proof.** `log.rs`, `traces.rs`, `unread_output.rs` and `keys_refused.rs` in `crates/server/tests/process`.

mod batched_writer;
mod command_log;
mod json_line;
mod log_filter;
mod service_log;
mod traces;

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
    panic,
};

use tracing_subscriber::{Layer, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

pub(crate) use self::{command_log::CommandLog, log_filter::LogFilter, service_log::ServiceLog, traces::Traces};
use self::{json_line::JsonLine, traces::SpanLayer};
use crate::{
    config::{LogConfig, LogFormat},
    stderr,
};

/// Capacity of the queue in lines. Lines beyond it are dropped.
const QUEUE_LINES: usize = 65_536;

/// Target of the audit events, which record changes of API keys. They pass every filter.
pub(crate) const AUDIT_TARGET: &str = "audit";

/// Target of the events about reloads. They pass every filter, so that SIGHUP always has a visible outcome.
pub(crate) const RELOAD_TARGET: &str = "reload";

/// Starts the log of a process that serves: on standard output, written by its own thread. `spans` receive the spans.
pub(crate) fn start(config: &LogConfig, spans: Vec<SpanLayer>) -> io::Result<(ServiceLog, LogFilter)> {
    let stdout = io::stdout();
    // The stream of the standard library would flush every line; the file does not.
    let file = File::from(stdout.as_fd().try_clone_to_owned()?);
    let report =
        |error: &io::Error| stderr::write_line(&format!("the log cannot be written to standard output: {error}"));
    let (log, writer) = ServiceLog::start(file, QUEUE_LINES, report)?;
    let filter = init(config, spans, stdout.is_terminal(), move || writer.clone());
    Ok((log, filter))
}

/// Starts the log of a command: on standard error, written before the command continues.
pub(crate) fn start_for_command(config: &LogConfig) -> CommandLog {
    let log = CommandLog::default();
    let writer = log.clone();
    init(config, Vec::new(), io::stderr().is_terminal(), move || writer.clone());
    log
}

fn init(
    config: &LogConfig,
    spans: Vec<SpanLayer>,
    terminal: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> LogFilter {
    let json = match config.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let (log_filter, filter) = LogFilter::new(&config.filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    let mut layers = spans;
    layers.push(match (json, terminal) {
        (true, _) => layer.event_format(JsonLine).with_filter(filter).boxed(),
        // The default: colours, unless NO_COLOR is set.
        (false, true) => layer.with_filter(filter).boxed(),
        (false, false) => layer.with_ansi(false).with_filter(filter).boxed(),
    });
    tracing_subscriber::registry().with(layers).init();
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, reason = panic.payload_as_str(), "panic");
    }));
    log_filter
}
