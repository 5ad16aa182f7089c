//! How a command runs.
//!
//! **Problem.** A command can run for an hour. It is interrupted, its output is cut off, or its disk is full.
//!
//! **Invariant.** A signal ends a command at once: what it added stays, and the same command continues. A file with its
//! final name is complete. Standard output has only the data or the result, standard error has everything else.
//!
//! **Proof.** `crates/server/tests/process`: `pets_import.rs`, `pets_export.rs` and `copy_store.rs`.

use std::{
    env,
    io::{self, Write},
    time::{Duration, Instant},
};

use animal_store_telemetry::{CommandLog, start_for_command};
use anyhow::{Context, bail, ensure};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::{
    config::{self, ConfigError, LogConfig, Sources, Values},
    shutdown::Signals,
};

/// The command line is invalid, or the configuration is not valid for this command.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct InvalidConfig(pub(crate) String);

/// The program that read standard output has closed it. As usual in a pipe, nothing is printed about it.
#[derive(Debug, Error)]
#[error("standard output was closed")]
pub(super) struct ClosedOutput;

/// Reads the part of the configuration that a command uses, and starts its log.
pub(super) fn start<T>(
    sources: &Sources,
    read: impl FnOnce(&mut Values) -> Option<T>,
) -> Result<(T, CommandLog), ConfigError> {
    let (config, part, warnings) = config::load(sources, |values| {
        Some((
            LogConfig::read(values),
            read(values)?,
            values.warnings.clone(),
        ))
    })?;
    let log = start_for_command(&config.settings);
    log_warnings(&warnings);
    Ok((part, log))
}

/// Logs the warnings about the configuration.
pub(super) fn log_warnings(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// Fails if a line of the log was lost.
pub(super) fn check_log(log: &CommandLog) -> anyhow::Result<()> {
    ensure!(
        !log.has_lost_lines(),
        "the command succeeded, but its log could not be written to standard error"
    );
    Ok(())
}

/// Runs a command on a runtime of its own.
pub(super) fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let result = runtime.block_on(command);
    // Threads that are blocked, such as in a read of a file or a lookup of a name, are left behind.
    runtime.shutdown_background();
    result
}

/// Runs a command that moves pets, until it ends or a signal arrives.
///
/// # Errors
/// The error of the command, or the command line to continue with. It contains no secret: no option takes one.
pub(super) fn move_pets(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    block_on(async {
        let signals = Signals::listen()?;
        tokio::select! {
            result = command => result,
            _ = signals.first() => {
                let arguments: Vec<_> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
                bail!("interrupted; to continue, run the same command again: {}", shell_words::join(arguments))
            }
        }
    })
}

/// Prints the result of a command.
pub(super) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    io::stdout()
        .write_all(text.as_ref())
        .context("the result cannot be written to standard output")
}

/// Prints the result of a command that moves pets: a name and a value per line, and how long it took.
pub(super) fn print_result(lines: &[(&str, String)], started: Instant) -> anyhow::Result<()> {
    let duration = ("duration", duration_since(started));
    lines
        .iter()
        .chain([&duration])
        .try_for_each(|(name, value)| print(format!("{name}: {value}\n")))
}

/// Formats the time that has passed, such as `3m 20s 15ms`.
pub(super) fn duration_since(started: Instant) -> String {
    let duration = started.elapsed();
    humantime::format_duration(Duration::new(
        duration.as_secs(),
        duration.subsec_millis() * 1_000_000,
    ))
    .to_string()
}

/// Aligns the cells of each column.
pub(super) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; COLUMNS]| {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
