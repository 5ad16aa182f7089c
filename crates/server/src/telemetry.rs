//! The log: one line per event, as text on a terminal and as JSON otherwise. `docs/logging.md` lists events and fields.
//!
//! **Problem.** The reader of standard output can be slower than the service, and a system call per line costs more CPU
//! than the line itself.
//!
//! **Invariant.** A request never waits for the log. A thread writes the lines in batches ([`batched_writer`]). If its
//! queue is full, lines are dropped and counted, and the count is logged at the end. Commands use standard output for
//! their result, so they log to standard error, and fail if a line is lost ([`command_log`]). Audit events pass every
//! filter.
//!
//! **Proof.** `log.rs` and `keys_refused.rs` in `crates/server/tests/process`.

mod batched_writer;
mod command_log;
mod json_line;

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
    panic,
};

use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

use self::{batched_writer::BatchedWriter, json_line::JsonLine};
use crate::config::{LogConfig, LogFormat};

pub(crate) use self::command_log::CommandLog;

/// Capacity of the queue in lines. Lines beyond it are dropped.
const QUEUE_LINES: usize = 65_536;

/// Target of the audit events, which record changes of API keys. They pass every filter.
pub(crate) const AUDIT_TARGET: &str = "audit";

/// The log of a process that serves. Dropping it writes the queued lines.
pub(crate) struct ServiceLog {
    _writer: WorkerGuard,
    dropped: ErrorCounter,
}

/// Starts the log of a process that serves: on standard output, written by its own thread.
pub(crate) fn start(config: &LogConfig) -> io::Result<ServiceLog> {
    let stdout = io::stdout();
    // The stream of the standard library would flush every line; the file does not.
    let file = File::from(stdout.as_fd().try_clone_to_owned()?);
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(QUEUE_LINES).finish(BatchedWriter::new(file));
    let dropped = writer.error_counter();
    init(config, stdout.is_terminal(), writer);
    Ok(ServiceLog { _writer: guard, dropped })
}

/// Starts the log of a command: on standard error, written before the command continues.
pub(crate) fn start_for_command(config: &LogConfig) -> CommandLog {
    let log = CommandLog::default();
    let writer = log.clone();
    init(config, io::stderr().is_terminal(), move || writer.clone());
    log
}

fn init(config: &LogConfig, terminal: bool, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    let json = match config.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let registry = tracing_subscriber::registry().with(config.filter.clone().with_target(AUDIT_TARGET, Level::INFO));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    if json {
        registry.with(layer.event_format(JsonLine)).init();
    } else if terminal {
        // The default: colours, unless NO_COLOR is set.
        registry.with(layer).init();
    } else {
        registry.with(layer.with_ansi(false)).init();
    }
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, reason = panic.payload_as_str(), "panic");
    }));
}

impl Drop for ServiceLog {
    fn drop(&mut self) {
        let dropped = self.dropped.dropped_lines();
        if dropped > 0 {
            tracing::warn!(dropped, "log lines were dropped because their reader was too slow");
        }
    }
}
