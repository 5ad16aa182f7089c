//! Who sent a request, as the log and `http.auth_failures` distinguish clients.
//! All clients of a Unix socket count as one, unless a trusted proxy reports their addresses. An IPv4 address is the
//! same client in both of its forms.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// Address of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAddress {
    Ip(IpAddr),
    /// The process at the other end of a Unix socket.
    UnixSocket,
}

impl ClientAddress {
    /// The text for a Unix socket, in the log and in `http.trusted_proxies`.
    pub(super) const UNIX: &str = "unix";
}

/// IPv4 in IPv6 form becomes IPv4.
impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address.to_canonical())
    }
}

impl From<SocketAddr> for ClientAddress {
    fn from(address: SocketAddr) -> Self {
        address.ip().into()
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(formatter),
            Self::UnixSocket => formatter.write_str(Self::UNIX),
        }
    }
}
