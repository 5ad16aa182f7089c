//! Settings as TOML, for operators.

use crate::{Schema, Values, schema::file_setting, values::Entry};

/// Length of the lines of a file.
const WIDTH: usize = 120;

impl Schema {
    /// Returns a file with these first lines and every setting as a comment with its description, except those that are
    /// set here.
    ///
    /// # Errors
    /// If a setting that is set is unknown or a secret. The message does not repeat the value.
    pub fn template(&self, head: &str, set: &[(String, String)]) -> Result<String, String> {
        for (name, _) in set {
            if self.find(name).is_none_or(|setting| setting.is_secret) {
                return Err(format!(
                    "{name} (--set) is not a setting, or it is a secret"
                ));
            }
        }
        let mut text = head.to_owned();
        for setting in self.settings() {
            let set = set.iter().rfind(|(name, _)| name == setting.name);
            text += &comment(setting.description);
            text += "\n";
            if let Some((name, value)) = set {
                text += &assignment(name, value);
            } else {
                text += "#";
                text += &assignment(setting.name, setting.default);
            }
            text += "\n";
        }
        Ok(text)
    }
}

impl Values {
    /// Returns each setting with its value and the source of that, as a line of TOML. A secret is a comment that says
    /// whether it is set.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for setting in self.schema.settings() {
            let name = setting.name;
            let entry = &self.entries[name];
            lines.push(match self.file_of(name) {
                Some(file) => line(&file_setting(name), file),
                None if setting.is_secret && !entry.is_blank() => {
                    format!("#{name} = \"(set)\" # {}", entry.source)
                }
                None => line(name, entry),
            });
        }
        lines
    }
}

fn line(name: &str, entry: &Entry) -> String {
    let assignment = assignment(name, entry.text());
    let source = &entry.source;
    format!("{assignment} # {source}")
}

/// Returns a setting with its value, as TOML.
fn assignment(name: &str, value: &str) -> String {
    let literal = literal(value);
    format!("{name} = {literal}")
}

/// Returns a text as a comment, after an empty line.
fn comment(text: &str) -> String {
    let mut comment = String::new();
    let mut length = WIDTH;
    for word in text.split(' ') {
        let word_length = 1 + word.chars().count();
        if length + word_length > WIDTH {
            comment += "\n#";
            length = 1;
        }
        comment += " ";
        comment += word;
        length += word_length;
    }
    comment
}

/// Returns a text as a value in TOML, without quotes if it is a number or a boolean.
fn literal(text: &str) -> String {
    let is_number = text
        .parse()
        .is_ok_and(|number: f64| number.is_finite() && number.to_string() == text);
    if is_number || ["true", "false"].contains(&text) {
        return text.to_owned();
    }
    // The escapes of JSON are escapes of TOML, which requires one more.
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_has_lines_of_120_columns_at_most() {
        let fits = format!("{} b", "a".repeat(116));
        assert_eq!(comment(&fits), format!("\n# {fits}"));
        let word = "a".repeat(117);
        let wrapped = format!("\n# {word}\n# b");
        assert_eq!(comment(&format!("{word} b")), wrapped);
    }

    /// TOML would read another text: 1e3 as 1000.
    #[test]
    fn a_number_that_is_not_in_its_shortest_form_is_quoted() {
        for text in ["1e3", "007", "+1", "1.50", "inf"] {
            assert_eq!(literal(text), format!("{text:?}"));
        }
        assert_eq!(literal("-1.5"), "-1.5");
    }
}
