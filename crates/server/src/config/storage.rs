use super::{
    Key,
    values::{Values, one_of},
};

const BACKEND: Key = Key::new("storage.backend", "memory", "Where animals are kept. `memory`: until the process ends.");

pub(super) const KEYS: &[Key] = &[BACKEND];

/// Where animals are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageConfig {
    /// In this process, until it ends.
    Memory,
}

impl StorageConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        values.read(&BACKEND, one_of(&[("memory", Self::Memory)]))
    }
}
