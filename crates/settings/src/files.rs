//! The files that settings name, and the secrets in them.

use std::path::Path;

use animal_store_small_files::read_text;
use secrecy::SecretString;

use crate::{
    Values,
    parsers::can_be_secret,
    schema::file_setting,
    values::{DEFAULT, Entry},
};

impl Values {
    /// Adds the warnings about a file that the configuration names.
    pub fn judge(&mut self, path: &Path, has_secrets: bool) {
        let warnings = (self.schema.judge)(path, has_secrets);
        self.warnings.extend(warnings);
    }

    /// Returns the content of the file that a setting names. `None`: none is named, there is an error, or the section is
    /// only checked.
    pub fn file(&mut self, name: &str, has_secrets: bool) -> Option<String> {
        let is_named = !self.mark_and_get(name).is_blank();
        if is_named && self.is_opening {
            self.read_file(name, has_secrets)
        } else {
            None
        }
    }

    /// Returns a secret, from the file that contains it if one is named. `None`: it is not set, there is an error, or
    /// its section is only checked.
    pub fn secret(&mut self, name: &str) -> Option<SecretString> {
        if !self.is_opening {
            return None;
        }
        let is_unread = self.mark_and_get(name).source == DEFAULT;
        if is_unread && let Some(file) = self.file_of(name) {
            let file = file.clone();
            self.read_secret(name, &file)?;
        }
        let entry = &self.entries[name];
        if entry.is_blank() {
            return None;
        }
        Some(entry.text().trim().into())
    }

    /// Reads a secret from its file, which becomes its source.
    fn read_secret(&mut self, name: &str, file: &Entry) -> Option<()> {
        let content = self.read_file(&file_setting(name), true)?;
        let path = file.text();
        let named_by = &file.source;
        let source = format!("{path}, named by {named_by}");
        self.set(name, &content, &source);
        if self.entries[name].is_blank() {
            self.reject(name, "is empty");
        }
        Some(())
    }

    fn read_file(&mut self, name: &str, has_secrets: bool) -> Option<String> {
        let path = self.text(name).to_owned();
        self.judge(Path::new(&path), has_secrets);
        let content = read_text(Path::new(&path));
        let content = content.map_err(|error| {
            if is_path(&path) {
                format!("names {path}, which cannot be read: {error}")
            } else {
                format!("names a file that cannot be read: {error}")
            }
        });
        self.check(name, content)
    }
}

/// Whether a text is a path. Any other can be the secret itself.
fn is_path(text: &str) -> bool {
    let path = Path::new(text);
    path.exists() || path.is_absolute() && !can_be_secret(text)
}
