//! The log: one line per event, as text on a terminal and as JSON otherwise. `docs/logging.md` lists events and fields.
//!
//! **Problem.** The reader of standard output can be slower than the service, and a system call per line costs more CPU
//! than the line itself.
//!
//! **Invariant.** A request never waits for the log. A thread writes the lines in batches ([`log_writer`]). If its
//! queue is full, lines are dropped and counted, and the count is logged at the end. The end of the process waits for
//! the log only until its deadline. An error of standard output is reported on standard error, once. Commands use
//! standard output for their result, so they log to standard error, and fail if a line is lost ([`CommandLog`]). Audit
//! events, and those of a reload, pass every filter, and no filter logs a span ([`traces`]).
//!
//! **Proof.** `log.rs`, `traces.rs`, `unread_output.rs` and `keys.rs` in `crates/server/tests/process`.

mod json_line;
mod log_writer;
mod traces;

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use animal_store_app::AuditEntry;
use anyhow::ensure;
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt::MakeWriter,
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

use self::json_line::JsonLine;
pub(crate) use self::{
    log_writer::ServiceLog,
    traces::{SpanLayer, Traces},
};
use crate::{config::LogConfig, stderr};

/// Capacity of the queue in lines. Lines beyond it are dropped.
const QUEUE_LINES: usize = 65_536;

/// Target of the events about reloads. They pass every filter, so that SIGHUP always has a visible outcome.
pub(crate) const RELOAD_TARGET: &str = "reload";

/// Filter of the log, which can be replaced.
///
/// It is a filter of the log's layer, not a layer: `tracing` caches its decision for each place in the code that logs,
/// so that an event takes no lock. A layer would take two.
pub(crate) type LogFilter = reload::Handle<Targets, Registry>;

/// Adds the targets whose level the configuration cannot change. Spans are not part of the log.
pub(crate) fn filter(configured: &Targets) -> Targets {
    let [audit, reload] =
        [AuditEntry::LOG_TARGET, RELOAD_TARGET].map(|target| (target, LevelFilter::INFO));
    configured
        .clone()
        .with_targets([audit, reload, (traces::TARGET, LevelFilter::OFF)])
}

/// Log of a command on standard error, which records whether a line was lost.
#[derive(Clone, Default)]
pub(crate) struct CommandLog(Arc<AtomicBool>);

impl CommandLog {
    /// Fails if a line could not be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let failed = self.0.load(Ordering::Relaxed);
        ensure!(
            !failed,
            "the command succeeded, but its log could not be written to standard error"
        );
        Ok(())
    }
}

impl Write for CommandLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr()
            .write_all(line)
            .inspect_err(|_| self.0.store(true, Ordering::Relaxed))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log of a process that serves: on standard output, written by its own thread. `spans` receives the spans.
pub(crate) fn start(
    config: &LogConfig,
    spans: Option<SpanLayer>,
) -> io::Result<(ServiceLog, LogFilter)> {
    let stdout = io::stdout();
    // The stream of the standard library would flush every line; the file does not.
    let file = File::from(stdout.as_fd().try_clone_to_owned()?);
    let log = ServiceLog::start(file, QUEUE_LINES, |error| {
        stderr::write_line(&format!(
            "the log cannot be written to standard output: {error}"
        ));
    })?;
    let writer = log.clone();
    let filter = init(config, spans, stdout.is_terminal(), move || writer.clone());
    Ok((log, filter))
}

/// Starts the log of a command: on standard error, written before the command continues.
pub(crate) fn start_for_command(config: &LogConfig) -> CommandLog {
    let log = CommandLog::default();
    let writer = log.clone();
    init(config, None, io::stderr().is_terminal(), move || {
        writer.clone()
    });
    log
}

fn init(
    config: &LogConfig,
    spans: Option<SpanLayer>,
    terminal: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> LogFilter {
    let (filter, log_filter) = reload::Layer::new(filter(&config.filter));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    // On a terminal the default: colours, unless NO_COLOR is set.
    let layer = if terminal {
        layer
    } else {
        layer.with_ansi(false)
    };
    let log = if config.json.unwrap_or(!terminal) {
        layer.event_format(JsonLine).with_filter(filter).boxed()
    } else {
        layer.with_filter(filter).boxed()
    };
    let layers: Vec<_> = spans.into_iter().chain([log]).collect();
    tracing_subscriber::registry().with(layers).init();
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, reason = panic.payload_as_str(), "panic");
    }));
    log_filter
}
