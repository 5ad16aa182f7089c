//! The log: one line an event, text on a terminal and JSON otherwise; on standard output, or on standard error where
//! that is for something else.
//!
//! A thread of its own writes it. Where its reader is slower than the service, lines are dropped and counted rather
//! than requests held up.

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal},
    os::fd::AsFd,
    panic,
};

use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{LogConfig, LogFormat};

/// Lines that wait to be written before others are dropped.
const MAX_WAITING_LINES: usize = 65_536;

/// Writes what is left of the log when it is dropped.
pub(crate) struct Log {
    _writer: WorkerGuard,
    dropped: ErrorCounter,
}

/// Who changed which API key: always logged, whatever the filter is.
pub(crate) const AUDIT: &str = "audit";

/// Starts the log of this process, on one of its standard streams.
pub(crate) fn start(config: &LogConfig, stream: &(impl AsFd + IsTerminal)) -> io::Result<Log> {
    let terminal = stream.is_terminal();
    // Not the stream itself: it writes out every line for itself, this writes as many as wait.
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING_LINES).finish(BufWriter::new(file));
    let dropped = writer.error_counter();

    let json = match config.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let registry = tracing_subscriber::registry().with(config.filter.clone().with_target(AUDIT, Level::INFO));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    if json {
        registry.with(layer.json().flatten_event(true).with_current_span(false).with_span_list(false)).init();
    } else if terminal {
        registry.with(layer).init();
    } else {
        registry.with(layer.with_ansi(false)).init();
    }
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, reason = panic.payload_as_str(), "panic");
    }));
    Ok(Log { _writer: guard, dropped })
}

impl Drop for Log {
    fn drop(&mut self) {
        let dropped = self.dropped.dropped_lines();
        if dropped > 0 {
            tracing::warn!(dropped, "lines of this log were dropped: their reader was too slow");
        }
    }
}
