//! `animal-store copy`: copies a store into another one.

use std::{path::PathBuf, time::Instant};

use animal_store_app::{ApiKeyId, CopyStore, CopySummary};
use clap::Args;

use crate::{keys::confirm_changes, output::print_result};

/// Arguments of `copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The store to read: its configuration file (.toml), or its SQLite file.
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// The store to write, which contains no other pets: its configuration file (.toml), or its SQLite file, which is
    /// created if it does not exist.
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Copies no API keys.
    #[arg(long)]
    pub without_keys: bool,
}

/// Copies a store and prints a summary. `open` opens both stores.
///
/// # Errors
/// If the copy fails, or a fail-over of the target can lose its API keys.
pub async fn run(open: impl Future<Output = anyhow::Result<CopyStore>>) -> anyhow::Result<()> {
    let started = Instant::now();
    let copy = open.await?;
    let summary = copy.execute().await?;
    print_summary(&summary, started)?;
    match copy.api_key_target() {
        Some(api_keys) => confirm_changes(api_keys).await,
        None => Ok(()),
    }
}

pub(crate) fn print_summary(summary: &CopySummary, started: Instant) -> anyhow::Result<()> {
    let pets = format!("{}, {} of them added", summary.pets, summary.added);
    let api_keys = match &summary.api_keys {
        Some(keys) => format!("{} added", keys.added),
        None => "not copied: --without-keys, or they are part of a configuration".to_owned(),
    };
    let mut lines = vec![
        ("pets", pets),
        ("pets verified, sha256", summary.digest.clone()),
        ("idempotency keys", summary.idempotency_records.to_string()),
        ("tokens of API keys", api_keys),
    ];
    if let Some(keys) = &summary.api_keys {
        if !keys.others.is_empty() {
            let ids = join(&keys.others);
            let text = format!("{ids}; revoke those that were revoked in the source");
            lines.push(("API keys of the target alone", text));
        }
        if !keys.valid_again.is_empty() {
            let ids = join(&keys.valid_again);
            let text =
                format!("{ids}; they had been revoked in the target: revoke them on both sides");
            lines.push(("warning: API keys valid again", text));
        }
    }
    print_result(&lines, started)
}

fn join(ids: &[ApiKeyId]) -> String {
    let ids: Vec<_> = ids.iter().map(ApiKeyId::as_str).collect();
    ids.join(", ")
}
