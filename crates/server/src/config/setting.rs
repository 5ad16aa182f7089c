use std::fmt;

use super::key::variable;

/// A value that a source sets.
pub(super) struct Setting {
    /// Name of a key, which may be unknown.
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) source: Source,
}

pub(super) enum Value {
    Text(String),
    /// An array of scalars in TOML.
    List(Vec<String>),
    /// An array of arrays or tables in TOML.
    Nested,
}

/// The source of a value, as errors name it.
pub(super) enum Source {
    File { name: String, line: usize },
    Variable(String),
    Flag(&'static str),
}

impl Source {
    /// Returns the name by which this source sets a key.
    pub(super) fn spelling(&self, name: &str) -> String {
        if let Self::Variable(_) = self { variable(name) } else { name.to_owned() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(formatter, "{name}, line {line}"),
            Self::Variable(name) => formatter.write_str(name),
            Self::Flag(name) => formatter.write_str(name),
        }
    }
}
