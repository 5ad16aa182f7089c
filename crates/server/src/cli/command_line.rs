//! The options of every command, which are those of [`Options`](super::options::Options): the help of a command lists
//! the ones that it uses, and it refuses the others. clap accepts each of them before and after every command.

use std::ffi::OsString;

use clap::{ArgMatches, Command, Error, error::ErrorKind, parser::ValueSource};

/// Parses arguments, of which the first one names the program.
///
/// # Errors
/// If they are invalid, or the command does not use one of them.
pub(super) fn parse(
    command: Command,
    arguments: impl Iterator<Item = OsString>,
) -> Result<ArgMatches, Error> {
    let mut command = complete(command);
    let matches = command.try_get_matches_from_mut(arguments)?;
    refuse_unused(&mut command, &matches)?;
    Ok(matches)
}

/// Completes the command line: each subcommand gets the options of every command, without those that it does not use in
/// its help.
pub(super) fn complete(mut command: Command) -> Command {
    command.build();
    hide_unused(command)
}

fn hide_unused(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|option| {
        let is_unused = option.is_global_set() && !uses(&name, option.get_id().as_str());
        option.hide(is_unused)
    });
    command.mut_subcommands(hide_unused)
}

/// Whether a command uses an option of every command.
fn uses(command: &str, option: &str) -> bool {
    match command {
        "animal-store" | "serve" => true,
        "copy" | "openapi" | "completions" => false,
        "config" | "init" => option == "set",
        _ => option != "print_key",
    }
}

/// Refuses the options that the help of the command does not list.
fn refuse_unused(command: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    if let Some((name, matches)) = matches.subcommand() {
        let subcommand = command.find_subcommand_mut(name);
        return refuse_unused(subcommand.expect("it was parsed"), matches);
    }
    let refused = command.get_arguments().find(|option| {
        let source = matches.value_source(option.get_id().as_str());
        option.is_hide_set() && source == Some(ValueSource::CommandLine)
    });
    let Some(option) = refused else {
        return Ok(());
    };
    let name = command.get_bin_name().unwrap_or_default();
    let reason = format!("{option} is not an option of {name}");
    Err(command.error(ErrorKind::UnknownArgument, reason))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn parse_line(line: &str) -> Result<ArgMatches, Error> {
        parse(Cli::command(), line.split(' ').map(OsString::from))
    }

    #[test]
    fn a_command_lists_the_options_of_every_command_that_it_uses_and_refuses_the_others() {
        let options = [
            "--config=a",
            "--set=a=b",
            "--listen=a",
            "--memory",
            "--print-key",
        ];
        for (command, used) in [
            ("serve", &options[..]),
            ("check-config", &options[..4]),
            ("keys list", &options[..4]),
            ("config init", &options[1..2]),
            ("copy --from a --to b", &[]),
            ("openapi", &[]),
            ("completions bash", &[]),
        ] {
            let help = parse_line(&format!("animal-store {command} --help")).unwrap_err();
            let help = help.to_string();
            for option in options {
                let (name, _) = option.split_once('=').unwrap_or((option, ""));
                let is_used = used.contains(&option);
                assert_eq!(help.contains(name), is_used, "{command} {name}: {help}");
                for line in [format!("{option} {command}"), format!("{command} {option}")] {
                    let parsed = parse_line(&format!("animal-store {line}"));
                    assert_eq!(parsed.is_ok(), is_used, "{line}");
                }
            }
        }
    }
}
