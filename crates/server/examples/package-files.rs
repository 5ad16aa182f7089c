//! Writes the files of the packages that are made from the code:
//!
//!     package-files FOLDER DATE
//!
//! They are a man page per command, completions for bash, zsh and fish, and `animal-store.toml`, which has every key of
//! the configuration as a comment. DATE, such as 2026-11-22, is the date of the man pages. `scripts/package` runs it.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use animal_store_server::{
    Config, command,
    config::{DEFAULT_FILE, Key},
};
use clap::Command;
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

/// Width of the comments in the configuration file.
const WIDTH: usize = 100;

/// Key that the package sets, and its value.
const STORAGE: (&str, &str) = ("storage.sqlite.path", "/var/lib/animal-store/animal-store.db");

const HEAD: &str = "\
# The configuration of the animal store. Each key is a comment with its default: remove the # to change a key.
# To check the file: animal-store check-config --config /etc/animal-store/animal-store.toml
# To apply a change: systemctl restart animal-store
";

fn main() -> io::Result<()> {
    let arguments: Vec<_> = env::args().collect();
    let [_, folder, date] = arguments.as_slice() else {
        return Err(io::Error::other("usage: package-files FOLDER DATE"));
    };
    let folder = Path::new(folder);
    let [man, completions] = ["man", "completions"].map(|name| folder.join(name));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let mut command = command().disable_help_subcommand(true);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "animal-store", &completions)?;
    }
    command.build();
    let source = format!("animal-store {}", command.get_version().unwrap_or_default());
    write_man_pages(&command, &man, date, &source)?;
    fs::write(folder.join(DEFAULT_FILE), configuration())
}

/// Writes the page of a command and those of its subcommands.
fn write_man_pages(command: &Command, folder: &Path, date: &str, source: &str) -> io::Result<PathBuf> {
    for subcommand in command.get_subcommands() {
        write_man_pages(subcommand, folder, date, source)?;
    }
    Man::new(command.clone()).date(date).source(source).manual("Animal store").generate_to(folder)
}

fn configuration() -> String {
    let mut text = HEAD.to_owned();
    for key in Config::all_keys() {
        text.push('\n');
        for line in lines(&plain(key.description)) {
            writeln!(text, "# {line}").expect("a string can be written");
        }
        let line = match STORAGE {
            (name, value) if name == key.name => assignment(key, value),
            _ => format!("#{}", assignment(key, key.default)),
        };
        writeln!(text, "{line}").expect("a string can be written");
    }
    text
}

fn assignment(key: &Key, value: &str) -> String {
    // A number with leading zeros, such as a mode, is not valid TOML.
    let is_number = value.parse().is_ok_and(|number: f64| number.to_string() == value);
    let is_bare = is_number || ["true", "false"].contains(&value);
    if is_bare { format!("{} = {value}", key.name) } else { format!("{} = {value:?}", key.name) }
}

/// Returns Markdown without its links: their targets are not files of the package.
fn plain(markdown: &str) -> String {
    let mut texts = markdown.split("](");
    let mut text = texts.next().unwrap_or_default().to_owned();
    for rest in texts {
        if let Some(bracket) = text.rfind('[') {
            text.remove(bracket);
        }
        text.push_str(rest.split_once(')').map_or(rest, |(_, rest)| rest));
    }
    text
}

/// Breaks a text at spaces.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + word.len() < WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
