/// A key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Name as in a TOML file: `section.name`.
    pub name: &'static str,
    /// Default value. Empty: none.
    pub default: &'static str,
    /// Description in Markdown, for the documentation.
    pub description: &'static str,
    /// Whether the value must never be shown. A secret can also be read from the file that the key `…_file` names.
    pub secret: bool,
}

/// Declares the keys of a section as constants, and `KEYS` with all of them.
macro_rules! keys {
    ($($id:ident: $kind:ident($($text:expr),+);)+) => {
        $(pub(in crate::config) const $id: Key = Key::$kind($($text),+);)+
        pub(in crate::config) const KEYS: &[Key] = &[$($id),+];
    };
}
pub(super) use keys;

/// Prefix of the environment variables of all keys.
pub(super) const PREFIX: &str = "ANIMAL_STORE";

impl Key {
    pub(super) const fn new(name: &'static str, default: &'static str, description: &'static str) -> Self {
        Self { name, default, description, secret: false }
    }

    pub(super) const fn secret(name: &'static str, description: &'static str) -> Self {
        Self { name, default: "", description, secret: true }
    }

    /// Returns the environment variable of the key.
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// Returns the key that names a file with this secret.
    pub(super) fn file_key(&self) -> String {
        format!("{}_file", self.name)
    }
}

/// Returns the environment variable of a key with this name, which may be unknown.
pub(super) fn variable(name: &str) -> String {
    format!("{PREFIX}_{}", name.to_uppercase().replace('.', "__"))
}
