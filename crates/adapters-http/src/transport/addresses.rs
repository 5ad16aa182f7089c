//! The addresses of the clients of one worker, and what the connections of an address share.

use std::{
    cell::RefCell,
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    rc::{Rc, Weak},
};

use tokio::sync::Mutex;

use crate::{middleware::trusted_proxies::TrustedProxies, rate_limits::network};

/// The addresses with open connections: an IPv4 address or an IPv6 network of 64 bits each.
#[derive(Default)]
pub(super) struct Addresses {
    known: RefCell<HashMap<IpAddr, Weak<Address>>>,
    /// The clients of a proxy have its address. Each of its connections counts as an address of its own.
    proxies: TrustedProxies,
}

/// An address. Each of its connections has a reference to it, and no other object has.
#[derive(Default)]
pub(super) struct Address {
    /// One connection of the address at a time takes a step of its TLS handshake, or waits for it.
    pub(super) turn: Mutex<()>,
}

impl Addresses {
    pub(super) fn new(proxies: TrustedProxies) -> Self {
        Self {
            known: RefCell::default(),
            proxies,
        }
    }

    /// Adds a connection to its address.
    pub(super) fn add(&self, peer: Option<SocketAddr>) -> Rc<Address> {
        let Some(key) = self.key(peer) else {
            return Rc::default();
        };
        let mut known = self.known.borrow_mut();
        let address = known.get(&key).and_then(Weak::upgrade).unwrap_or_default();
        known.insert(key, Rc::downgrade(&address));
        address
    }

    /// Removes an address if this connection is its last one.
    pub(super) fn remove(&self, peer: Option<SocketAddr>, address: &Rc<Address>) {
        if let Some(key) = self.key(peer)
            && Rc::strong_count(address) == 1
        {
            self.known.borrow_mut().remove(&key);
        }
    }

    /// Returns the address with the most connections, and their number.
    pub(super) fn busiest(&self) -> Option<(IpAddr, usize)> {
        let known = self.known.borrow();
        known
            .iter()
            .map(|(key, address)| (*key, address.strong_count()))
            .max_by_key(|(_, connections)| *connections)
    }

    fn key(&self, peer: Option<SocketAddr>) -> Option<IpAddr> {
        let client = peer?.ip();
        (!self.proxies.contains(client)).then(|| network(client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ipv4_address_or_a_network_of_64_bits_and_a_trusted_proxy_has_one_for_each_connection()
     {
        let proxies = TrustedProxies::parse(&["10.0.0.0/8".to_owned()]).unwrap();
        let addresses = Addresses::new(proxies);
        for (peers, counts) in [
            (["192.0.2.1:1", "192.0.2.1:2"], [1, 2]),
            (["192.0.2.2:1", "192.0.2.3:1"], [1, 1]),
            (["[2001:db8::1]:1", "[2001:db8::ffff:2]:1"], [1, 2]),
            (["[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1"], [1, 1]),
            (["10.0.0.1:1", "10.0.0.1:2"], [1, 1]),
        ] {
            let peers = peers.map(|peer| Some(peer.parse().unwrap()));
            let added = peers.map(|peer| {
                let address = addresses.add(peer);
                (Rc::strong_count(&address), peer, address)
            });
            assert_eq!(added.each_ref().map(|(count, ..)| *count), counts);
            for (_, peer, address) in added {
                addresses.remove(peer, &address);
            }
            assert!(addresses.known.borrow().is_empty(), "{peers:?}");
        }
    }
}
