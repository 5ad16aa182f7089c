//! The command line.
//!
//! **Problem.** Operators and their scripts need the outcome of a command, and no output may show a secret.
//!
//! **Invariant.** Exit code 0 means success. Exit code 1 means that the service did not start, did not end gracefully,
//! or a command failed. Exit code 2 means that the command line or the configuration is invalid. Errors are written to
//! standard error. Standard output contains the result of a command or the log of the service, and nothing else. An
//! error never repeats an argument that can be a secret.
//!
//! **Proof.** `crates/server/tests/process`, above all `command_line.rs`, `keys_refused.rs` and `secrets.rs`.

mod copy;
mod doctor;
mod file_limit;
mod health;
mod keys;
mod migrate;
mod missing_key;
mod options;
mod pets;
mod quickstart;
mod random;
mod serve;
mod transfer;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};
use thiserror::Error;

use self::{options::Options, transfer::ClosedOutput};
use crate::{config::Config, stderr, version};

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
    Serve(Options),
    /// Checks the configuration and prints it without secrets.
    CheckConfig(Options),
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
    /// Copies pets, idempotency keys and API keys into a new SQLite file, which is a store of its own.
    Backup(copy::BackupArgs),
}

/// The command line or the configuration is invalid, or not valid for this command.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct InvalidConfig(pub(crate) String);

/// Returns the command line, for its man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let mut command = cli.command.unwrap_or(Command::Serve(Options::default()));
    let options = match &mut command {
        Command::Serve(options) => {
            let options = cli.options.join(std::mem::take(options));
            if let Err(error) = options.check() {
                return fail(&error, 2);
            }
            // It installs its signal handlers before it reads the configuration.
            let loaded = options.clone();
            return exit_code(serve::run(move || Config::load(&loaded.clone().sources()), &options));
        }
        Command::CheckConfig(options) => std::mem::take(options),
        Command::Keys(keys) => std::mem::take(keys.settings_mut()).into(),
        Command::Migrate(migrate) => std::mem::take(&mut migrate.settings).into(),
        Command::Doctor(doctor) => std::mem::take(&mut doctor.settings).into(),
        Command::Health(health) => std::mem::take(&mut health.settings).into(),
        Command::Pets(pets) => std::mem::take(pets.settings_mut()).into(),
        Command::Backup(backup) => std::mem::take(&mut backup.settings).into(),
        Command::Copy(_) if cli.options != Options::default() => {
            return fail("options before copy have no effect: --from and --to name its stores", 2);
        }
        Command::Copy(args) => return exit_code(copy::run(args)),
        Command::OpenApi => return exit_code(print_openapi()),
    };
    let config = match load(cli.options.join(options)) {
        Ok(config) => config,
        Err(error) => return fail(&error, 2),
    };
    exit_code(match command {
        Command::Pets(command) => pets::run(command, config),
        Command::Backup(args) => copy::back_up(&args, config),
        Command::CheckConfig(_) => print_config(&config),
        Command::Keys(command) => keys::run(command, &config),
        Command::Migrate(args) => migrate::run(&args, config),
        Command::Doctor(args) => doctor::run(&args, &config),
        Command::Health(args) => health::run(&args, &config),
        Command::Serve(_) | Command::OpenApi | Command::Copy(_) => unreachable!("it returned above"),
    })
}

fn load(options: Options) -> Result<Config, String> {
    options.check()?;
    Config::load(&options.sources()).map_err(|error| error.to_string())
}

fn print_config(config: &Config) -> anyhow::Result<()> {
    for warning in &config.warnings {
        stderr::write_line(&format!("warning: {warning}"));
    }
    let mut stdout = io::stdout().lock();
    for (key, value) in &config.shown {
        writeln!(stdout, "{} = {value}", key.name)?;
    }
    Ok(())
}

fn print_openapi() -> anyhow::Result<()> {
    io::stdout().write_all(animal_store_adapters_http::OPENAPI_DOCUMENT.as_bytes())?;
    Ok(())
}

fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ClosedOutput>() => ExitCode::FAILURE,
        Err(error) => fail(&format!("{error:#}"), if error.is::<InvalidConfig>() { 2 } else { 1 }),
    }
}

fn fail(error: &str, code: u8) -> ExitCode {
    stderr::write_line(error);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
