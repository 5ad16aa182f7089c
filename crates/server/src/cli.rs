//! The command line.
//!
//! Exit codes: 0 after an orderly end, 1 where the service could not start or was not ended in order, or a command
//! could not do what it was asked for, 2 where the command line or the configuration is not valid.

mod keys;
mod migrate;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};

use crate::{
    application::Application,
    config::{Config, Sources},
    file_limit, first_steps,
    shutdown::Signals,
    telemetry,
};

/// A store catalogue of animals as JSON over HTTP.
#[derive(Debug, Parser)]
#[command(name = "animal-store", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves until SIGTERM or SIGINT. This is what happens without a command.
    Serve(Options),
    /// Checks the configuration, prints it without its secrets, and ends.
    CheckConfig(Options),
    /// Issues, lists, revokes and rotates API keys, where the configuration keeps them outside of the process.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Prints the interface as an OpenAPI document.
    #[command(name = "openapi")]
    OpenApi,
    /// Runs the migrations that the database has not seen, and prints their names.
    Migrate(migrate::Migrate),
}

type Run = Box<dyn FnOnce(Config, &Sources) -> anyhow::Result<()>>;

/// May stand before the command as well as behind it, so clap must not take one for the other.
#[derive(Debug, Default, Args)]
struct Options {
    #[command(flatten)]
    settings: Settings,
    /// The same as --set http.listen=ADDRESS.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
}

#[derive(Debug, Default, Args)]
struct Settings {
    /// A TOML file with the configuration; animal-store.toml by default, where it exists.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Sets a key of the configuration; see docs/configuration.md. Secrets cannot be given this way.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let (run, options): (Run, _) = match cli.command {
        None => (Box::new(serve), Options::default()),
        Some(Command::Serve(options)) => (Box::new(serve), options),
        Some(Command::CheckConfig(options)) => (Box::new(print_config), options),
        Some(Command::Keys(command)) => {
            let (action, settings) = command.split();
            (Box::new(|config, _| keys::run(action, config)), Options { settings, listen: None })
        }
        Some(Command::OpenApi) => return end(print_openapi()),
        Some(Command::Migrate(migrate::Migrate { dry_run, settings })) => {
            (Box::new(move |config, _| migrate::run(dry_run, config)), Options { settings, listen: None })
        }
    };
    let loaded = cli.options.followed_by(options).sources().and_then(|sources| {
        let config = Config::load(&sources).map_err(|error| error.to_string())?;
        Ok((sources, config))
    });
    let (sources, config) = match loaded {
        Ok(loaded) => loaded,
        Err(problem) => return complain(&problem, 2),
    };
    end(run(config, &sources))
}

fn end(done: anyhow::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("{error:#}"), 1),
    }
}

impl Options {
    /// These options and those: what comes later wins.
    fn followed_by(self, later: Self) -> Self {
        Self {
            settings: Settings {
                config: later.settings.config.or(self.settings.config),
                set: self.settings.set.into_iter().chain(later.settings.set).collect(),
            },
            listen: later.listen.or(self.listen),
        }
    }

    fn sources(self) -> Result<Sources, String> {
        let Settings { config, set } = self.settings;
        // Not while the flags are parsed: clap would repeat the secret in its complaint.
        if let Some((name, _)) = set.iter().find(|(name, _)| is_secret(name)) {
            return Err(format!("{name} is a secret: the process list would show it to every user of this machine"));
        }
        let listen = self.listen.map(|address| ("http.listen".to_owned(), address));
        Ok(Sources::of_process(config, set.into_iter().chain(listen).collect()))
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no =")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn is_secret(name: &str) -> bool {
    Config::all_keys().any(|key| key.secret && key.name == name)
}

fn serve(mut config: Config, _: &Sources) -> anyhow::Result<()> {
    let _log = telemetry::start(&config.log)?;
    let limits = &config.http.limits;
    file_limit::raise(limits.max_connections + config.storage.connections(limits.workers));
    let new_token = first_steps::make_key(&mut config.keys)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let signals = Signals::listen()?;
        let application = tokio::select! {
            application = Application::build(config) => application?,
            () = signals.first() => return Ok(()),
        };
        let management = application.management_address().map(|address| address.to_string());
        tracing::info!(address = %application.address(), management, "listening");
        if let Some(token) = new_token {
            first_steps::show(&token, application.address())?;
        }
        application.run_until(signals.first(), signals.second()).await
    })
}

fn print_config(_: Config, sources: &Sources) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    for (key, value) in Config::effective(sources) {
        writeln!(stdout, "{} = {value}", key.name)?;
    }
    Ok(())
}

fn print_openapi() -> anyhow::Result<()> {
    io::stdout().write_all(animal_store_adapters_http::openapi_document().as_bytes())?;
    Ok(())
}

fn complain(problem: &str, code: u8) -> ExitCode {
    // Where standard error is closed, the exit code has to say it all.
    let _ = writeln!(io::stderr(), "animal-store: {problem}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_secret_cannot_be_set_by_a_flag() {
        let cli = Cli::parse_from(["animal-store", "--set", "keys.memory.tokens=top-secret"]);
        let problem = cli.options.sources().unwrap_err();
        assert!(problem.starts_with("keys.memory.tokens is a secret"), "{problem}");
        assert!(!problem.contains("top-secret"), "{problem}");
    }

    #[test]
    fn options_before_and_behind_the_command_are_all_taken_and_the_later_wins() {
        let cli = Cli::parse_from(
            "animal-store --set a=1 --set b=1 --listen x --config f check-config --set b=2 --listen y".split(' '),
        );
        let Some(Command::CheckConfig(behind)) = cli.command else { panic!("the command") };
        let options = cli.options.followed_by(behind);

        let set: Vec<_> = options.settings.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(set, [("a", "1"), ("b", "1"), ("b", "2")]);
        assert_eq!(options.listen.as_deref(), Some("y"));
        assert_eq!(options.settings.config, Some("f".into()));
    }

    #[test]
    fn a_key_is_set_to_all_that_follows_the_first_equals_sign() {
        assert_eq!(key_and_value("http.listen=x=y"), Ok(("http.listen".to_owned(), "x=y".to_owned())));
        assert!(key_and_value("http.listen").is_err());
    }
}
