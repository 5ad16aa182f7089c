//! How a command runs: its log, its runtime, and its end by a signal.
//!
//! **Invariant.** A signal ends a command at once: what it added stays, and the same command continues.
//!
//! **Proof.** `crates/server/tests/process`: `pets_import.rs`, `pets_export.rs` and `copy_store.rs`.

use std::{env, time::Duration};

use animal_store_settings::{SettingsError, Values};
use animal_store_telemetry::CommandLog;
use anyhow::bail;
use tokio::{runtime::Builder, task::spawn_blocking};

use crate::{
    config::{self, LogConfig, Sources},
    shutdown::Signals,
};

/// Reads the sections that a command uses, and starts its log.
pub(super) fn start<T>(
    sources: &Sources,
    log: &CommandLog,
    read: impl FnOnce(&mut Values) -> Option<T>,
) -> Result<T, SettingsError> {
    let mut values = config::read(sources);
    let (opened, config) = values.open(|values| {
        let config = LogConfig::read(values);
        Some((read(values)?, config))
    })?;
    log.start(&config.settings);
    log_warnings(&values.warnings());
    Ok(opened)
}

/// Logs the warnings about the configuration.
pub(super) fn log_warnings(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// Runs a command on a runtime of its own.
pub(super) fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(Duration::MAX)
        .build()?;
    let result = runtime.block_on(async {
        // Starts a thread for blocking work, which is kept. If the system refuses further ones, work waits for it;
        // without any, `spawn_blocking` panics.
        spawn_blocking(|| ()).await?;
        command.await
    });
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
        signals.listen_for_hangups()?;
        tokio::select! {
            result = command => result,
            _ = signals.first() => {
                let arguments: Vec<_> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
                bail!("interrupted; to continue, run the same command again: {}", shell_words::join(arguments))
            }
        }
    })
}
