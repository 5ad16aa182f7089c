use std::net::SocketAddr;

use super::{
    key::{Key, keys},
    values::{Values, address},
};

keys! {
    LISTEN: new("management.listen", "127.0.0.1:8081",
        "Address of `/live` and `/ready`, which need no API key. Empty: no management listener.");
}

/// Returns the address of the management listener, if there is one.
pub(super) fn read_listen(values: &mut Values) -> Option<SocketAddr> {
    values.read(&LISTEN, |text| if text.is_empty() { Ok(None) } else { address(text).map(Some) })
}
