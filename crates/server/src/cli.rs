//! The command line.
//!
//! **Problem.** Operators and their scripts need the outcome of a command, and no output may show a secret.
//!
//! **Invariant.** Exit code 0 means success. Exit code 1 means that the service did not start, did not end gracefully,
//! or a command failed. Exit code 2 means that the command line or the configuration is invalid, or that
//! a file is not believed. Errors are written to
//! standard error. Standard output contains the result of a command or the log of the service, and nothing else. An
//! error never repeats an argument that can be a secret.
//!
//! **Proof.** `crates/server/tests/process`, above all `command_line.rs`, `keys.rs` and `configuration.rs`.

mod command;
mod copy;
mod doctor;
mod encryption;
mod health;
mod import;
mod key_list;
mod keys;
mod options;
mod pets;
mod quickstart;
mod serve;

use std::{
    env,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use animal_store_adapters_http::{PublicUrl, openapi_document};
use animal_store_adapters_postgres::Migrations;
use animal_store_adapters_sqlite::{SqliteFile, SqliteFileError};
use animal_store_telemetry::stderr;
use anyhow::bail;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use rlimit::{Resource, setrlimit};

pub(crate) use self::command::InvalidConfig;
use self::{
    command::{ClosedOutput, block_on, duration_since, move_pets, print, start},
    options::Options,
};
use crate::{
    config::{Config, ConfigError, Sources, SqliteConfig, StorageConfig, duration, template},
    version,
};

/// A catalogue of pets as JSON over HTTP.
#[derive(Debug, Parser)]
#[command(name = "animal-store", version = version::BUILD.version, long_version = version::DESCRIPTION.as_str())]
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
    /// Administers the API keys in the file, in PostgreSQL or in Redis.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Examines the file, PostgreSQL, Redis and the certificate, and changes none of them.
    Doctor {
        /// Prints a JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Queries /ready of the configured management listener and prints its body: exit code 0 if the instance is ready.
    Health {
        /// Time for the whole request, such as 500ms.
        #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration(health::TIMEOUTS))]
        timeout: Duration,
    },
    /// Prints the OpenAPI document of the API.
    #[command(name = "openapi")]
    OpenApi {
        /// URL of the API, which ends in /v1, as the server of the document.
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// Runs the pending migrations of PostgreSQL or of the file, and prints their versions.
    Migrate {
        /// Prints the versions of the pending migrations without running them.
        #[arg(long)]
        dry_run: bool,
    },
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
    Backup {
        /// SQLite file to create, with mode 0600.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Prints every key with its description, as a comment unless --set sets it.
    Init,
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    // A core dump would have the tokens and the private keys. Lowering a limit needs no permission.
    let _ = setrlimit(Resource::CORE, 0, 0);
    match execute(cli.command.unwrap_or(Command::Serve), &cli.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ClosedOutput>() => ExitCode::FAILURE,
        Err(error) => {
            stderr::write_line(&format!("{error:#}"));
            let file = error.downcast_ref::<SqliteFileError>();
            let is_invalid = error.is::<InvalidConfig>()
                || error.is::<ConfigError>()
                || file.is_some_and(SqliteFileError::is_not_believed);
            ExitCode::from(if is_invalid { 2 } else { 1 })
        }
    }
}

/// Each command reads the part of the configuration that it uses.
fn execute(command: Command, options: &Options) -> anyhow::Result<()> {
    options.check(env::args_os())?;
    let sources = || options.sources();
    match command {
        Command::Serve => serve::run(options),
        Command::CheckConfig => {
            let (lines, warnings) = Config::lines(&sources()?)?;
            for warning in warnings {
                stderr::write_line(&format!("warning: {warning}"));
            }
            print(lines.join("\n") + "\n")
        }
        Command::Config(ConfigCommand::Init) => {
            print(template(&options.set).map_err(InvalidConfig)?)
        }
        Command::Keys(command) => block_on(keys::run(command, &sources()?)),
        Command::Pets(command) => move_pets(pets::run(command, &sources()?)),
        Command::Migrate { dry_run } => block_on(migrate(dry_run, &sources()?)),
        Command::Backup { file } => move_pets(copy::back_up(&file, &sources()?)),
        Command::Copy(_) if *options != Options::default() => {
            bail!(InvalidConfig(
                "no option selects the stores of copy but --from and --to".to_owned()
            ))
        }
        Command::Copy(args) => move_pets(copy::run(&args)),
        Command::OpenApi { server } => {
            let server = server.as_deref().map(PublicUrl::parse).transpose();
            let server = server.map_err(|error| InvalidConfig(format!("--server {error}")))?;
            print(openapi_document(server.as_ref()).as_bytes())
        }
        Command::Doctor { json } => block_on(doctor::run(json, &sources()?)),
        Command::Health { timeout } => block_on(health::run(timeout, &sources()?)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            // The completions name every command: those of `help` would repeat them.
            let mut command = Cli::command().disable_help_subcommand(true);
            clap_complete::generate(shell, &mut command, "animal-store", &mut script);
            print(script)
        }
    }
}

/// Prints the versions of the migrations that it runs, one per line.
async fn migrate(dry_run: bool, sources: &Sources) -> anyhow::Result<()> {
    let started = Instant::now();
    let (storage, _log) = start(sources, StorageConfig::read)?;
    let versions = match storage {
        StorageConfig::Postgres(postgres) => {
            let migrations =
                Migrations::new(postgres.migrate_endpoint, postgres.settings.connect_timeout);
            if dry_run {
                migrations.pending().await?
            } else {
                let versions = migrations.run().await?;
                if migrations.advance_sequence().await? {
                    tracing::info!(
                        "the sequence of ids was behind the greatest id, and was set to it"
                    );
                }
                versions
            }
        }
        StorageConfig::Sqlite(SqliteConfig { path, .. }) if dry_run => SqliteFile::pending(&path)?,
        StorageConfig::Sqlite(sqlite) => {
            SqliteFile::migrate(&sqlite.path, sqlite.settings.timeout)?
        }
        StorageConfig::Memory { .. } => bail!("storage.backend is memory, which has no schema"),
    };
    if versions.is_empty() {
        tracing::info!("no migration is pending");
    } else if !dry_run {
        tracing::info!(
            duration = duration_since(started),
            "the migrations were run"
        );
    }
    print(
        versions
            .iter()
            .flat_map(|version| [version, "\n"])
            .collect::<String>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
