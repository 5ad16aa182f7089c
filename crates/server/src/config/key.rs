//! Keys as lines of TOML: what `config init` and `check-config` print.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::{
    Config,
    values::{Key, Values, file_key, items},
};

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

impl Values {
    /// Returns each key with its value and the source of that, as a line of TOML. A secret is a comment that says
    /// whether it is set. Returns the values alone, too: for a secret in a file, the content of the file.
    pub(super) fn show(&self) -> (Vec<String>, BTreeMap<&'static str, SecretString>) {
        let rows = self.keys.iter().map(|key| {
            let (text, source) = match (self.settings.get(key.name), self.implied.get(key.name)) {
                (_, Some(implied)) => *implied,
                (Some(setting), _) => (setting.text.as_str(), setting.source.as_str()),
                (None, None) => (key.default, "default"),
            };
            let file_key = file_key(key.name);
            let line = match self.settings.get(&file_key) {
                Some(file) if key.secret => format!("{file_key} = {} # {}", literal(&file.text), file.source),
                _ if key.secret && items(text).next().is_some() => format!("#{} = \"(set)\" # {source}", key.name),
                _ => format!("{} = {} # {source}", key.name, literal(text)),
            };
            let secret = self.secrets.get(key.name).cloned();
            (line, (key.name, secret.unwrap_or_else(|| text.into())))
        });
        rows.unzip()
    }
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
