use std::net::SocketAddr;

use super::{
    key::{Key, keys},
    values::{Values, address},
};

keys! {
    LISTEN: new("management.listen", "127.0.0.1:8081",
        "Address of `/live` and `/ready`, which need no API key. Empty: no management listener.");
}

/// The management listener.
#[derive(Debug)]
pub(crate) struct ManagementConfig {
    pub(crate) listen: Option<SocketAddr>,
}

impl ManagementConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        let optional = |text: &str| if text.is_empty() { Ok(None) } else { address(text).map(Some) };
        Self { listen: values.read(&LISTEN, optional) }
    }
}
