/// One thing that can be set.
#[derive(Debug)]
pub struct Key {
    /// Its name, as in a TOML file: `section.name`.
    pub name: &'static str,
    /// Its value where nothing else sets it.
    pub default: &'static str,
    /// What it means, in one sentence of Markdown.
    pub about: &'static str,
    /// Whether its value must never be seen. A secret can also be read from the file that the key `…_file` names.
    pub secret: bool,
}

/// What the environment variables of all keys begin with.
pub(super) const PREFIX: &str = "ANIMAL_STORE";

impl Key {
    pub(super) const fn new(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self { name, default, about, secret: false }
    }

    pub(super) const fn secret(name: &'static str, about: &'static str) -> Self {
        Self { name, default: "", about, secret: true }
    }

    /// Its environment variable.
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// The key that names a file with this secret.
    pub(super) fn file_name(&self) -> String {
        format!("{}_file", self.name)
    }
}

/// The environment variable of a key of this name, known or not.
pub(super) fn variable(name: &str) -> String {
    format!("{PREFIX}_{}", name.to_uppercase().replace('.', "__"))
}
