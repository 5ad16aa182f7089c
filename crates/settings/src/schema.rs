//! The settings that exist.

use std::{fmt, path::Path};

/// Maximum number of edits between an unknown name and the one that its error suggests.
const MAX_EDITS: usize = 3;

/// A setting of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Name as in a TOML file: `section.name`.
    pub name: &'static str,
    /// Default value. Empty: none.
    pub default: &'static str,
    /// Description in Markdown, in one line.
    pub description: &'static str,
    /// Whether the value must never be shown. A secret can also be in the file that the setting `…_file` names.
    pub is_secret: bool,
    /// Whether a process that runs takes over a new value.
    pub reloads: bool,
}

impl Setting {
    /// Creates a setting that is neither a secret nor reloaded.
    pub const fn new(name: &'static str, default: &'static str, description: &'static str) -> Self {
        Self {
            name,
            default,
            description,
            is_secret: false,
            reloads: false,
        }
    }

    /// Creates a secret, which has no default.
    pub const fn secret(name: &'static str, description: &'static str) -> Self {
        Self {
            is_secret: true,
            ..Self::new(name, "", description)
        }
    }

    /// Returns the setting as one that a process takes over while it runs.
    #[must_use]
    pub const fn reloaded(self) -> Self {
        Self {
            reloads: true,
            ..self
        }
    }
}

/// Returns the name of the setting that names a file with this secret.
pub(crate) fn file_setting(name: &str) -> String {
    format!("{name}_file")
}

/// Returns the section of a setting: its name up to the first dot.
pub(crate) fn section_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// All settings of a program.
pub struct Schema {
    /// Prefix of the environment variables.
    pub prefix: &'static str,
    /// The settings of each section, in the order of the documentation.
    pub sections: &'static [&'static [Setting]],
    /// Returns warnings about a file that is opened, and that contains secrets or not.
    pub judge: fn(path: &Path, has_secrets: bool) -> Vec<String>,
}

/// Without the settings: they are long, and the same for all values.
impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut schema = formatter.debug_struct("Schema");
        schema.field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Schema {
    /// Returns every setting.
    pub fn settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.sections.iter().copied().flatten()
    }

    /// Returns the setting with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Setting> {
        self.settings().find(|setting| setting.name == name)
    }

    /// Whether this section exists.
    pub(crate) fn has_section(&self, section: &str) -> bool {
        self.settings()
            .any(|setting| section_of(setting.name) == section)
    }

    /// Returns the names that a source can set: those of the settings, and of the files with secrets.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for setting in self.settings() {
            names.push(setting.name.to_owned());
            if setting.is_secret {
                names.push(file_setting(setting.name));
            }
        }
        names
    }

    /// Returns the environment variable of a setting with this name, which may be unknown.
    pub fn variable(&self, name: &str) -> String {
        let name = name.to_uppercase().replace('.', "__");
        format!("{}_{name}", self.prefix)
    }

    /// Returns the reason to reject an unknown setting, with the nearest known name if one is near, spelt as in this
    /// source.
    pub(crate) fn unknown(&self, name: &str, source: &str) -> String {
        let lower = name.trim().to_lowercase();
        let nearest = self
            .names()
            .into_iter()
            .map(|known| (strsim::osa_distance(&lower, &known), known))
            .min();
        let max_edits = MAX_EDITS.min(lower.len() / 3);
        match nearest {
            Some((edits, known)) if edits <= max_edits => {
                let is_variable = source.starts_with(self.prefix);
                let spelt = if is_variable {
                    self.variable(&known)
                } else {
                    known
                };
                format!("is unknown: did you mean {spelt}?")
            }
            _ => "is unknown".to_owned(),
        }
    }
}
