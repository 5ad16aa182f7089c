//! What commands print on standard output.

use std::{
    io::{self, ErrorKind, Write},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use thiserror::Error;

/// The program that read standard output has closed it. As usual in a pipe, nothing is printed about it.
#[derive(Debug, Error)]
#[error("standard output was closed")]
pub struct ClosedOutput;

/// Prints the result of a command.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let result = stdout.write_all(text.as_ref());
    written(result.and_then(|()| stdout.flush()))
        .context("the result cannot be written to standard output")
}

/// Returns the outcome of a write: [`ClosedOutput`] if it is a pipe that was closed.
pub(crate) fn written<T>(result: io::Result<T>) -> anyhow::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => bail!(ClosedOutput),
        result => Ok(result?),
    }
}

/// Prints the result of a command that moves pets: a name and a value per line, and how long it took.
pub(crate) fn print_result(lines: &[(&str, String)], started: Instant) -> anyhow::Result<()> {
    for (name, value) in lines {
        print(format!("{name}: {value}\n"))?;
    }
    let duration = duration_since(started);
    print(format!("duration: {duration}\n"))
}

/// Formats the time that has passed, such as `3m 20s 15ms`.
pub fn duration_since(started: Instant) -> String {
    let milliseconds = started.elapsed().as_millis();
    let duration = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX));
    humantime::format_duration(duration).to_string()
}

/// Aligns the cells of each column.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut table = String::new();
    for row in rows {
        let mut cells = Vec::new();
        for (cell, width) in row.iter().zip(widths) {
            cells.push(format!("{cell:width$}"));
        }
        table += cells.join("  ").trim_end();
        table += "\n";
    }
    table
}
