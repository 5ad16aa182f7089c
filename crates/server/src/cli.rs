//! The command line.
//!
//! **Problem.** Operators and their scripts need the outcome of a command, and no output may show a secret.
//!
//! **Invariant.** Exit code 0 means success. Exit code 1 means that the service did not start, did not end gracefully,
//! or a command failed. Exit code 2 means that the command line or the configuration is invalid. Errors are written to
//! standard error. Standard output contains the result of a command or the log of the service, and nothing else. An
//! error never repeats an argument that can be a secret.
//!
//! **Proof.** `crates/server/tests/process`, above all `command_line.rs`, `keys.rs` and `configuration.rs`.

mod copy;
mod doctor;
mod health;
mod keys;
mod migrate;
mod options;
mod pets;
mod quickstart;
mod serve;
mod transfer;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::bail;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use thiserror::Error;

use self::{options::Options, transfer::ClosedOutput};
use crate::{
    config::{
        self, Config, ConfigError, KeysConfig, LogConfig, Sources, StorageConfig, Values, read_management, template,
    },
    stderr, version,
};

/// A catalogue of pets as JSON over HTTP.
#[derive(Debug, Parser)]
#[command(name = "animal-store", version = version::VERSION, long_version = version::BUILD)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves until SIGTERM or SIGINT; the default command.
    Serve,
    /// Checks the configuration and prints it as TOML, without secrets, with the source of each value.
    CheckConfig,
    /// Prints a configuration file.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Administers the API keys in the file or in Redis.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Examines the file, PostgreSQL, Redis and the certificate, and changes none of them.
    Doctor(doctor::DoctorArgs),
    /// Queries /ready of the configured management listener: exit code 0 if the instance is ready.
    Health(health::HealthArgs),
    /// Prints the OpenAPI document of the API.
    #[command(name = "openapi")]
    OpenApi,
    /// Runs the pending migrations of PostgreSQL or of the file, and prints their versions.
    Migrate(migrate::MigrateArgs),
    /// Exports pets to a file, or imports them from one.
    #[command(subcommand)]
    Pets(pets::Command),
    /// Copies pets, idempotency keys and API keys from one store to another. The environment is ignored.
    Copy(copy::CopyArgs),
    /// Prints the completions of the command line for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Copies pets, idempotency keys and API keys into a new SQLite file, which is a store of its own.
    Backup(copy::BackupArgs),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Prints every key with its description, as a comment unless --set sets it.
    Init,
}

/// The command line or the configuration is invalid, or not valid for this command.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct InvalidConfig(pub(crate) String);

impl From<ConfigError> for InvalidConfig {
    fn from(error: ConfigError) -> Self {
        Self(error.to_string())
    }
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match execute(cli.command.unwrap_or(Command::Serve), &cli.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ClosedOutput>() => ExitCode::FAILURE,
        Err(error) => {
            stderr::write_line(&format!("{error:#}"));
            ExitCode::from(if error.is::<InvalidConfig>() { 2 } else { 1 })
        }
    }
}

/// Each command reads the part of the configuration that it uses.
fn execute(command: Command, options: &Options) -> anyhow::Result<()> {
    options.check(env::args_os())?;
    let sources = options.sources();
    match command {
        Command::Serve => {
            // It installs its signal handlers before it reads the configuration.
            let loaded = options.clone();
            serve::run(move || Config::load(&loaded.sources()), options)
        }
        Command::CheckConfig => {
            let (lines, warnings) = Config::lines(&sources).map_err(InvalidConfig::from)?;
            for warning in warnings {
                stderr::write_line(&format!("warning: {warning}"));
            }
            print(lines.join("\n") + "\n")
        }
        Command::Config(ConfigCommand::Init) => print(template(&options.set).map_err(InvalidConfig)?),
        Command::Keys(command) => {
            let (log, keys) =
                load(&sources, |values| Some((LogConfig::read(values), KeysConfig::read_for_command(values)?)))?;
            keys::run(command, &keys, &log)
        }
        Command::Pets(command) => {
            let (log, storage) = load(&sources, read_storage)?;
            pets::run(command, storage, &log)
        }
        Command::Migrate(args) => {
            let (log, storage) = load(&sources, read_storage)?;
            migrate::run(&args, storage, &log)
        }
        Command::Backup(args) => copy::back_up(&args, &sources),
        Command::Copy(_) if *options != Options::default() => {
            bail!(InvalidConfig("no option selects the stores of copy but --from and --to".to_owned()))
        }
        Command::Copy(args) => copy::run(&args),
        Command::Doctor(args) => doctor::run(&args, &sources),
        Command::Health(args) => health::run(&args, load(&sources, |values| Some(read_management(values)))?),
        Command::OpenApi => print(animal_store_adapters_http::OPENAPI_DOCUMENT),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            // The completions name every command: those of `help` would repeat them.
            let mut command = Cli::command().disable_help_subcommand(true);
            clap_complete::generate(shell, &mut command, "animal-store", &mut script);
            print(script)
        }
    }
}

/// Reads the part of the configuration that a command uses.
fn load<T>(sources: &Sources, read: impl FnOnce(&mut Values) -> Option<T>) -> Result<T, InvalidConfig> {
    Ok(config::load(sources, read)?.0)
}

fn read_storage(values: &mut Values) -> Option<(LogConfig, StorageConfig)> {
    Some((LogConfig::read(values), StorageConfig::read(values)?))
}

fn read_stores(values: &mut Values) -> Option<(StorageConfig, KeysConfig)> {
    let (storage, keys) = (StorageConfig::read(values), KeysConfig::read_for_command(values));
    storage.zip(keys)
}

fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    Ok(io::stdout().write_all(text.as_ref())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
