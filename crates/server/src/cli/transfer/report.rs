use std::io::{self, Write};

use anyhow::Context;
use thiserror::Error;

/// The program that read standard output has closed it. As usual in a pipe, nothing is printed about it.
#[derive(Debug, Error)]
#[error("standard output was closed")]
pub(in crate::cli) struct ClosedOutput;

/// Prints the result of a command on standard output, a name and a value per line.
///
/// # Errors
/// If it cannot be written.
pub(in crate::cli) fn print_result(quiet: bool, lines: &[(&str, String)]) -> anyhow::Result<()> {
    if quiet {
        return Ok(());
    }
    let text: String = lines.iter().map(|(name, value)| [*name, ": ", value.as_str(), "\n"].concat()).collect();
    io::stdout().write_all(text.as_bytes()).context("the result cannot be written to standard output")
}
