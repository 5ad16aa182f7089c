//! `animal-store pets`: moves pets out of the storage into a file, and back.

mod export;
mod import;

use clap::Subcommand;

use crate::{
    config::{LogConfig, StorageConfig},
    telemetry,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Writes every pet, in order of id, to a file or to standard output.
    Export(export::ExportArgs),
    /// Adds the pets of a file.
    Import(import::ImportArgs),
}

pub(super) fn run(command: Command, storage: StorageConfig, log: &LogConfig) -> anyhow::Result<()> {
    let _log = telemetry::start_for_command(log);
    match command {
        Command::Export(args) => export::run(&args, storage),
        Command::Import(args) => import::run(args, storage),
    }
}
