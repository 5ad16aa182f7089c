use std::time::Duration;

use super::{
    key::{Key, keys},
    values::{Values, duration},
};

keys! {
    TIMEOUT: new("shutdown.timeout", "30s",
        "Timeout for the requests in flight at a shutdown. After it, they are cut off and the exit code is 1.");
}

/// The graceful shutdown.
#[derive(Debug)]
pub(crate) struct ShutdownConfig {
    pub(crate) timeout: Duration,
}

impl ShutdownConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        let range = Duration::from_millis(1)..=Duration::from_hours(1);
        Self { timeout: values.read(&TIMEOUT, duration(range)) }
    }
}
