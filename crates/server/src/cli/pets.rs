//! `animal-store pets`: moves pets out of the storage into a file, and back.

mod export;
mod import;

use clap::Subcommand;

use super::options::Settings;
use crate::config::Config;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Writes every pet, in order of id, to a file or to standard output.
    Export(export::ExportArgs),
    /// Adds the pets of a file.
    Import(import::ImportArgs),
}

impl Command {
    pub(super) fn settings_mut(&mut self) -> &mut Settings {
        match self {
            Self::Export(args) => &mut args.settings,
            Self::Import(args) => &mut args.settings,
        }
    }
}

pub(super) fn run(command: Command, config: Config) -> anyhow::Result<()> {
    match command {
        Command::Export(args) => export::run(&args, config),
        Command::Import(args) => import::run(args, config),
    }
}
