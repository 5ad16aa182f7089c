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
mod command_line;
mod doctor;
mod health;
mod migrate;
mod options;
mod quickstart;
mod serve;
mod stores;

use std::{env, io, process::ExitCode, time::Duration};

use animal_store_adapters_cli::{
    ClosedOutput, UsageError, backup::BackupArgs, copy::CopyArgs, doctor::DoctorArgs, keys, pets,
    print,
};
use animal_store_adapters_http::{PublicUrl, openapi_document};
use animal_store_adapters_sqlite::SqliteFileError;
use animal_store_settings::{SettingsError, parsers::duration};
use animal_store_telemetry::{CommandLog, stderr};
use anyhow::ensure;
use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use clap_complete::Shell;
use nix::libc::SIGXFSZ;
use rlimit::{Resource, setrlimit};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

use self::{
    command::{block_on, move_pets},
    options::Options,
};
use crate::{
    config::{Config, SCHEMA, TEMPLATE_HEAD},
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
    Doctor(DoctorArgs),
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
    Copy(CopyArgs),
    /// Prints the completions of the command line for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Copies pets, idempotency keys and API keys into a new SQLite file, which is a store of its own.
    Backup(BackupArgs),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Prints every setting with its description, as a comment unless --set sets it.
    Init,
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    avoid_core_dumps();
    let _ = outlive_full_files();
    let cli = parse().unwrap_or_else(|error| without_values(error).exit());
    match execute(cli.command.unwrap_or(Command::Serve), &cli.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ClosedOutput>() => ExitCode::FAILURE,
        Err(error) => {
            stderr::write_line(&format!("{error:#}"));
            let file = error.downcast_ref::<SqliteFileError>();
            let is_invalid = error.is::<UsageError>()
                || error.is::<SettingsError>()
                || file.is_some_and(SqliteFileError::is_unsafe);
            ExitCode::from(if is_invalid { 2 } else { 1 })
        }
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let matches = command_line::parse(Cli::command(), env::args_os())?;
    Cli::from_arg_matches(&matches)
}

/// A core dump would have the tokens and the private keys. With a limit of 1 byte, Linux writes no file, and starts no
/// program of `core_pattern`, which gets a dump with a limit of 0. A hard limit of 0 stays: raising it needs a permission.
fn avoid_core_dumps() {
    let _ = setrlimit(Resource::CORE, 1, 1);
}

/// Handles SIGXFSZ, which would end the process at a limit of the size of files (`ulimit -f`): the write fails instead.
fn outlive_full_files() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // The handler stays when the runtime ends.
    let _ = signal(SignalKind::from_raw(SIGXFSZ))?;
    Ok(())
}

/// Hides what an error repeats, except the name of an option: it can be a secret in the wrong place.
fn without_values(mut error: clap::Error) -> clap::Error {
    let repeated = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => ContextKind::InvalidValue,
    };
    // An empty one means that a value is missing.
    if let Some(ContextValue::String(text)) = error.get(repeated)
        && !text.is_empty()
    {
        let name = text.split('=').next().unwrap_or_default();
        let is_option = repeated == ContextKind::InvalidArg && name.starts_with('-');
        let shown = if is_option { name } else { "…" };
        error.insert(repeated, ContextValue::String(shown.to_owned()));
    }
    error
}

/// Each command reads the part of the configuration that it uses. It fails if a line of its log is lost.
fn execute(command: Command, options: &Options) -> anyhow::Result<()> {
    options.check(env::args_os())?;
    let sources = || options.sources();
    let log = &CommandLog::default();
    match command {
        Command::Serve => serve::run(options),
        Command::CheckConfig => {
            let config = Config::load(&sources()?)?;
            for warning in config.values.warnings() {
                stderr::write_line(&format!("warning: {warning}"));
            }
            print(config.values.lines().join("\n") + "\n")
        }
        Command::Config(ConfigCommand::Init) => {
            let template = SCHEMA.template(TEMPLATE_HEAD, &options.set);
            print(template.map_err(UsageError)?)
        }
        Command::Keys(command) => block_on(stores::keys(command, &sources()?, log)),
        Command::Pets(command) => move_pets(stores::pets(command, &sources()?, log)),
        Command::Migrate { dry_run } => block_on(migrate::run(dry_run, &sources()?, log)),
        Command::Backup(args) => move_pets(stores::back_up(args, &sources()?, log)),
        Command::Copy(args) => move_pets(stores::copy(args, log)),
        Command::OpenApi { server } => {
            let server = server.as_deref().map(PublicUrl::parse).transpose();
            let server = server.map_err(|error| UsageError(format!("--server {error}")))?;
            print(openapi_document(server.as_ref()).as_bytes())
        }
        Command::Doctor(args) => block_on(doctor::run(&args, &sources()?)),
        Command::Health { timeout } => block_on(health::run(timeout, &sources()?)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            // The completions name every command: those of `help` would repeat them.
            let mut command = command_line::complete(Cli::command().disable_help_subcommand(true));
            clap_complete::generate(shell, &mut command, "animal-store", &mut script);
            // clap_complete writes the hyphen of the name in two ways in its script for bash (clap-rs/clap#6421).
            let script = String::from_utf8(script)?;
            print(script.replace("animal__subcmd__store", "animal__store"))
        }
    }?;
    ensure!(
        !log.has_lost_lines(),
        "the command succeeded, but its log could not be written to standard error"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Returns command lines with `SECRET` in each place of a command and of its subcommands.
    fn lines_with_a_secret(command: &clap::Command, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for arguments in [
            "SECRET",
            "x SECRET",
            "--token=SECRET",
            "--token-stdi=SECRET",
            "-- x --token=SECRET",
        ] {
            lines.push(format!("{name} {arguments}"));
        }
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            lines.push(format!("{name} --{option}=SECRET"));
            lines.push(format!("{name} --{option} SECRET"));
        }
        for subcommand in command.get_subcommands() {
            let name = format!("{name} {}", subcommand.get_name());
            lines.extend(lines_with_a_secret(subcommand, &name));
        }
        lines
    }

    #[test]
    fn no_error_repeats_a_value() {
        let mut kinds = Vec::new();
        for line in lines_with_a_secret(&Cli::command(), "animal-store") {
            // A path can be any text.
            if let Err(error) = Cli::try_parse_from(line.split(' ')) {
                kinds.push(error.kind());
                let shown = without_values(error).to_string();
                assert!(!shown.contains("SECRET"), "{line}: {shown}");
            }
        }
        for kind in [
            ErrorKind::UnknownArgument,
            ErrorKind::InvalidSubcommand,
            ErrorKind::InvalidValue,
            ErrorKind::ValueValidation,
            ErrorKind::TooManyValues,
        ] {
            assert!(kinds.contains(&kind), "{kind}");
        }
    }
}
