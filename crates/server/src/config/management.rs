use std::net::SocketAddr;

use super::{
    Key,
    values::{Values, address},
};

const LISTEN: Key = Key::new(
    "management.listen",
    "127.0.0.1:8081",
    "Where operators ask for `/live` and `/ready`, without an API key. Empty for nowhere.",
);

pub(super) const KEYS: &[Key] = &[LISTEN];

/// The interface for operators.
#[derive(Debug)]
pub struct ManagementConfig {
    /// Where it listens, if anywhere.
    pub listen: Option<SocketAddr>,
}

impl ManagementConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let optional = |text: &str| if text.is_empty() { Ok(None) } else { address(text).map(Some) };
        Some(Self { listen: values.read(&LISTEN, optional)? })
    }
}
