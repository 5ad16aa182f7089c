//! Keys as lines of TOML: what `config init` and `check-config` print.

use super::{Config, values::Key};

/// Width of the comments.
const WIDTH: usize = 100;

const HEAD: &str = "\
# The configuration of the animal store. Each key is a comment with its default: remove the # to change a key.
# To check the file: animal-store check-config --config FILE
";

/// Returns a configuration file: each key as a comment with its description, except those that are set here.
///
/// # Errors
/// If a key that is set is unknown or a secret. The message does not repeat the value.
pub fn template(set: &[(String, String)]) -> Result<String, String> {
    let keys = Config::all_keys();
    if let Some((name, _)) = set.iter().find(|(name, _)| !keys.iter().any(|key| key.name == name && !key.secret)) {
        return Err(format!("{name} (--set) is not a key, or a secret"));
    }
    let mut text = HEAD.to_owned();
    for Key { name, default, description, .. } in keys {
        let value = set.iter().rev().find(|(set, _)| set == name);
        let (mark, value) = value.map_or(("#", default), |(_, value)| ("", value));
        text += "\n";
        text.extend(wrapped(description).iter().flat_map(|line| ["# ", line, "\n"]));
        text.extend([mark, name, " = ", &literal(value), "\n"]);
    }
    Ok(text)
}

/// Returns a line of TOML that names the source of the value.
pub(super) fn assignment(name: &str, value: &str, source: &str) -> String {
    format!("{name} = {} # {source}", literal(value))
}

/// Returns a line of TOML, a comment, which says that a secret is set.
pub(super) fn secret_assignment(name: &str, source: &str) -> String {
    format!("#{name} = \"(set)\" # {source}")
}

/// Returns a text as a value in TOML, without quotes if it is a number or a boolean.
fn literal(text: &str) -> String {
    let is_number = text.parse().is_ok_and(|number: f64| number.is_finite() && number.to_string() == text);
    if is_number || ["true", "false"].contains(&text) {
        return text.to_owned();
    }
    // The escapes of JSON are escapes of TOML, which requires one more.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Breaks a text at spaces.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < WIDTH => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
