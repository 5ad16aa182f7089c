use std::time::Duration;

use super::{
    Key,
    values::{Values, duration},
};

const TIMEOUT: Key = Key::new(
    "shutdown.timeout",
    "30s",
    "How long requests in flight may take once the process was told to end. Later, they are cut off and the exit \
     code is 1.",
);

pub(super) const KEYS: &[Key] = &[TIMEOUT];

/// How the process ends.
#[derive(Debug)]
pub struct ShutdownConfig {
    /// How long requests in flight may take.
    pub timeout: Duration,
}

impl ShutdownConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let range = Duration::from_millis(1)..=Duration::from_hours(1);
        Some(Self { timeout: values.read(&TIMEOUT, duration(range))? })
    }
}
