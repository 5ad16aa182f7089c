//! The log: one line per event, as text on a terminal and as JSON otherwise. `docs/logging.md` lists events and fields.
//!
//! **Problem.** The reader of standard output can be slower than the service, and a system call per line costs more CPU
//! than the line itself.
//!
//! **Invariant.** A request never waits for the log. A thread writes the lines in batches ([`writer`]). If its
//! queue is full, lines are dropped and counted, and the count is logged at the end. The end of the process waits for
//! the log only until its deadline. An error of standard output is reported on standard error, once. Commands use
//! standard output for their result, so they log to standard error, and fail if a line is lost ([`CommandLog`]). The
//! targets in [`LogSettings::always`] pass every filter, and no filter logs a span ([`traces`](super::traces)).
//!
//! **Proof.** `log.rs`, `traces.rs`, `unread_output.rs` and `keys.rs` in `crates/server/tests/process`.

mod json_line;
mod writer;

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

use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt::MakeWriter,
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

use self::json_line::JsonLine;
pub use self::writer::ServiceLog;
use crate::{
    stderr,
    traces::{self, SpanLayer},
};

/// Capacity of the queue in lines. Lines beyond it are dropped.
const QUEUE_LINES: usize = 65_536;

/// Settings of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// Level of each target.
    pub filter: Targets,
    /// Targets whose events of the level INFO and above pass every filter.
    pub always: &'static [&'static str],
    /// Format of the lines.
    pub format: LogFormat,
}

/// Format of the lines of the log.
#[derive(Debug, Clone, Copy)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// Text.
    Text,
    /// JSON.
    Json,
}

impl LogSettings {
    /// Adds the targets whose level the configuration cannot change. Spans are not part of the log.
    fn complete_filter(&self) -> Targets {
        let always = self
            .always
            .iter()
            .map(|target| (*target, LevelFilter::INFO));
        self.filter
            .clone()
            .with_targets(always)
            .with_target(traces::TARGET, LevelFilter::OFF)
    }
}

/// Filter of the log, which can be replaced.
///
/// It is a filter of the log's layer, not a layer: `tracing` caches its decision for each place in the code that logs,
/// so that an event takes no lock. A layer would take two.
pub struct LogFilter(reload::Handle<Targets, Registry>);

impl LogFilter {
    /// Replaces the filter. Has no effect if the log has ended.
    pub fn replace(&self, settings: &LogSettings) {
        let _ = self.0.reload(settings.complete_filter());
    }
}

/// Log of a command on standard error, which records whether a line was lost.
#[derive(Clone, Default)]
pub struct CommandLog(Arc<AtomicBool>);

impl CommandLog {
    /// Starts the log: on standard error, written before the command continues.
    pub fn start(&self, settings: &LogSettings) {
        let writer = self.clone();
        init(settings, None, io::stderr().is_terminal(), move || {
            writer.clone()
        });
    }

    /// Returns whether a line could not be written.
    #[must_use]
    pub fn has_lost_lines(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
///
/// # Errors
/// If standard output cannot be duplicated, or the thread cannot be started.
pub fn start(
    settings: &LogSettings,
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
    let filter = init(settings, spans, stdout.is_terminal(), move || {
        writer.clone()
    });
    Ok((log, filter))
}

fn init(
    settings: &LogSettings,
    spans: Option<SpanLayer>,
    terminal: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> LogFilter {
    let (filter, log_filter) = reload::Layer::new(settings.complete_filter());
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    // On a terminal the default: colours, unless NO_COLOR is set.
    let layer = if terminal {
        layer
    } else {
        layer.with_ansi(false)
    };
    let is_json = match settings.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let log = if is_json {
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
    LogFilter(log_filter)
}
