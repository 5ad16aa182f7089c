//! Prints the configuration file of the packages, which has every key as a comment. `scripts/package` runs it.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use animal_store_server::{Config, config::Key};

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
    io::stdout().write_all(configuration().as_bytes())
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
