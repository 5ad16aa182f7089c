//! The addresses of the clients of one worker, and what the connections of an address share.

use std::{
    cell::RefCell,
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    rc::{Rc, Weak},
    sync::Arc,
};

use tokio::sync::Mutex;

type ShareOf = Arc<dyn Fn(IpAddr) -> Option<IpAddr> + Send + Sync>;

/// The addresses with open connections.
pub(super) struct Addresses {
    known: RefCell<HashMap<IpAddr, Weak<Address>>>,
    /// See [`ServerSettings::share_of`](crate::ServerSettings::share_of).
    share_of: ShareOf,
}

/// An address. Each of its connections has a reference to it, and no other object has.
#[derive(Default)]
pub(super) struct Address {
    /// One connection of the address at a time takes a step of its TLS handshake, or waits for it.
    pub(super) turn: Mutex<()>,
}

/// The address with the most connections.
pub(super) struct Busiest {
    pub(super) address: IpAddr,
    pub(super) connections: usize,
}

impl Addresses {
    pub(super) fn new(share_of: ShareOf) -> Self {
        Self {
            known: RefCell::default(),
            share_of,
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

    /// Returns the address with the most connections.
    pub(super) fn busiest(&self) -> Option<Busiest> {
        let known = self.known.borrow();
        let counts = known.iter().map(|(key, address)| Busiest {
            address: *key,
            connections: address.strong_count(),
        });
        counts.max_by_key(|address| address.connections)
    }

    fn key(&self, peer: Option<SocketAddr>) -> Option<IpAddr> {
        (self.share_of)(peer?.ip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_an_address_share_it_and_one_without_a_share_is_alone() {
        let addresses = Addresses::new(Arc::new(|client| client.is_ipv4().then_some(client)));
        for (peers, counts) in [
            (["192.0.2.1:1", "192.0.2.1:2"], [1, 2]),
            (["192.0.2.2:1", "192.0.2.3:1"], [1, 1]),
            (["[2001:db8::1]:1", "[2001:db8::1]:2"], [1, 1]),
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
