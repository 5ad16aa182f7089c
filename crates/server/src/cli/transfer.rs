//! Shared parts of the commands that move pets.
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
};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use thiserror::Error;
use tokio::runtime::Runtime;

use super::options::quoted;
use crate::shutdown::Signals;

/// The program that read standard output has closed it. As usual in a pipe, nothing is printed about it.
#[derive(Debug, Error)]
#[error("standard output was closed")]
pub(super) struct ClosedOutput;

/// Runs a command on a runtime of its own, until it ends or a signal arrives.
///
/// # Errors
/// The error of the command, or the command line to continue with. It contains no secret: no option takes one.
pub(super) fn run(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let result = runtime.block_on(async {
        let signals = Signals::listen()?;
        tokio::select! {
            result = command => result,
            _ = signals.first() => {
                let arguments: Vec<_> = env::args_os().map(|argument| quoted(&argument.to_string_lossy())).collect();
                bail!("interrupted; to continue, run the same command again: {}", arguments.join(" "))
            }
        }
    });
    // A thread that is blocked is left behind.
    runtime.shutdown_background();
    result
}

/// Returns a progress bar on standard error, which is hidden if that is not a terminal.
pub(super) fn progress_bar(quiet: bool, total: Option<u64>, template: &str) -> ProgressBar {
    let bar = match total {
        _ if quiet => ProgressBar::hidden(),
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("the template is valid"))
}

/// Prints the result of a command on standard output, a name and a value per line.
///
/// # Errors
/// If it cannot be written.
pub(super) fn print_result(quiet: bool, lines: &[(&str, String)]) -> anyhow::Result<()> {
    if quiet {
        return Ok(());
    }
    let text: String = lines.iter().map(|(name, value)| [*name, ": ", value.as_str(), "\n"].concat()).collect();
    io::stdout().write_all(text.as_bytes()).context("the result cannot be written to standard output")
}
