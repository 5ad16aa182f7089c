//! The log: one line an event, text on a terminal and JSON otherwise.
//!
//! That of the service is on standard output, written by a thread of its own. Where its reader is slower than the
//! service, lines are dropped and counted rather than requests held up. Commands have standard output for something else,
//! and lose no line unnoticed.

mod json_line;
mod paced;

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

use anyhow::ensure;
use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{LogConfig, LogFormat};
use json_line::JsonLine;
use paced::Paced;

/// Lines that wait to be written before others are dropped.
const MAX_WAITING_LINES: usize = 65_536;

/// Writes what is left of the log when it is dropped.
pub(crate) struct Log {
    _writer: WorkerGuard,
    dropped: ErrorCounter,
}

/// Who changed which API key: always logged, whatever the filter is.
pub(crate) const AUDIT: &str = "audit";

/// Starts the log of a process that serves: on standard output, by a thread of its own.
pub(crate) fn start(config: &LogConfig) -> io::Result<Log> {
    let stdout = io::stdout();
    // Not the stream itself: it writes out every line for itself, this writes as many as wait.
    let file = File::from(stdout.as_fd().try_clone_to_owned()?);
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING_LINES).finish(Paced::new(file));
    let dropped = writer.error_counter();
    init(config, stdout.is_terminal(), writer);
    Ok(Log { _writer: guard, dropped })
}

/// Starts the log of a command: on standard error, each line before the command goes on.
pub(crate) fn start_audit(config: &LogConfig) -> Audit {
    let audit = Audit::default();
    let writer = audit.clone();
    init(config, io::stderr().is_terminal(), move || writer.clone());
    audit
}

fn init(config: &LogConfig, terminal: bool, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    let json = match config.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let registry = tracing_subscriber::registry().with(config.filter.clone().with_target(AUDIT, Level::INFO));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    if json {
        registry.with(layer.event_format(JsonLine)).init();
    } else if terminal {
        registry.with(layer).init();
    } else {
        registry.with(layer.with_ansi(false)).init();
    }
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, reason = panic.payload_as_str(), "panic");
    }));
}

/// A log on standard error that knows whether a line was lost.
#[derive(Clone, Default)]
pub(crate) struct Audit(Arc<AtomicBool>);

impl Audit {
    /// Whether every line was written.
    pub(crate) fn complete(&self) -> anyhow::Result<()> {
        ensure!(!self.0.load(Ordering::Relaxed), "it was done, but the log on standard error could not be written");
        Ok(())
    }
}

impl Write for Audit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(bytes).inspect_err(|_| self.0.store(true, Ordering::Relaxed))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let dropped = self.dropped.dropped_lines();
        if dropped > 0 {
            tracing::warn!(dropped, "lines of this log were dropped: their reader was too slow");
        }
    }
}
