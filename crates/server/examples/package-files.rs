//! Writes the files of the packages that are made from the code:
//!
//!     package-files FOLDER DATE
//!
//! They are a man page per command, completions for bash, zsh and fish, and `animal-store.toml`, which has every key of
//! the configuration as a comment. DATE, such as 2026-11-22, is the date of the man pages. `scripts/package` runs it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use animal_store_server::{
    command,
    config::{DEFAULT_FILE, template},
};
use clap::Command;
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

/// Key that the package sets, and its value.
const STORAGE: (&str, &str) = ("storage.sqlite.path", "/var/lib/animal-store/animal-store.db");

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
    let set = [(STORAGE.0.to_owned(), STORAGE.1.to_owned())];
    fs::write(folder.join(DEFAULT_FILE), template(&set).map_err(io::Error::other)?)
}

/// Writes the page of a command and those of its subcommands.
fn write_man_pages(command: &Command, folder: &Path, date: &str, source: &str) -> io::Result<PathBuf> {
    for subcommand in command.get_subcommands() {
        write_man_pages(subcommand, folder, date, source)?;
    }
    Man::new(command.clone()).date(date).source(source).manual("Animal store").generate_to(folder)
}
