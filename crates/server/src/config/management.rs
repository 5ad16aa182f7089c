use std::net::{IpAddr, SocketAddr};

use super::{
    http,
    key::{Key, keys},
    values::{Values, address, optional},
};

keys! {
    LISTEN: new("management.listen", "127.0.0.1:8081",
        "Address of `/live`, `/ready` and `/metrics`, which need no API key. It must not overlap with `http.listen`. \
         Empty: no management listener.");
}

/// Returns the address of the management listener, if there is one.
pub(super) fn read_listen(values: &mut Values, api: SocketAddr) -> Option<SocketAddr> {
    let listen = values.read(&LISTEN, optional(address))?;
    let rule = format!("must differ from {}: {listen} and {api} overlap", values.label(&http::LISTEN));
    values.require(!overlap(listen, api), &[&LISTEN, &http::LISTEN], &rule);
    Some(listen)
}

/// Returns whether two listeners cannot have these addresses. Port 0 selects a free port; `[::]` includes every IPv4
/// address.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let includes = |a: IpAddr, b: IpAddr| a == b || a.is_unspecified() && (a.is_ipv6() || b.is_ipv4());
    let [a_ip, b_ip] = [a, b].map(|address| address.ip().to_canonical());
    a.port() == b.port() && a.port() != 0 && (includes(a_ip, b_ip) || includes(b_ip, a_ip))
}
