//! The address of the client, if the request came through proxies (ADR 0028).

use std::net::{IpAddr, SocketAddr};

use actix_web::{
    dev::ServiceRequest,
    http::header::{HeaderMap, X_FORWARDED_FOR},
};
use ipnet::IpNet;
use thiserror::Error;

use crate::header_lists::elements;

/// The proxies that are trusted to report the address of their client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
}

/// These texts are neither IP addresses nor networks. The error does not repeat them: each can be a URL with a password.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("must contain IP addresses or networks such as 10.0.0.0/8, which number {0} is not")]
pub struct TrustedProxiesError(String);

impl TrustedProxies {
    /// Parses IP addresses and networks in CIDR notation.
    ///
    /// # Errors
    /// [`TrustedProxiesError`] with the number of each other text.
    pub fn parse(texts: &[String]) -> Result<Self, TrustedProxiesError> {
        let mut networks = Vec::new();
        let mut invalid = Vec::new();
        for (text, number) in texts.iter().zip(1..) {
            match network(text) {
                Some(network) => networks.push(network),
                None => invalid.push(number.to_string()),
            }
        }
        if !invalid.is_empty() {
            return Err(TrustedProxiesError(invalid.join(", ")));
        }
        Ok(Self { networks })
    }

    /// Whether no proxy is trusted.
    pub const fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    /// Returns whether an address is that of a trusted proxy.
    pub(crate) fn contains(&self, client: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&client))
    }

    /// Returns the address of the client: of the peer, unless a trusted proxy reports another one.
    pub(crate) fn client_of(&self, request: &ServiceRequest) -> Option<IpAddr> {
        let peer = request.peer_addr()?.ip();
        Some(self.client_address(peer, request.headers()))
    }

    /// Returns the rightmost address that is not a trusted proxy, starting with the peer. The walk ends at an element
    /// that contains no address; the address before it counts. Elements to the left of the result are not read.
    fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let elements = elements(headers, X_FORWARDED_FOR);
        let mut client = peer;
        for address in elements.rev().map_while(address) {
            client = address;
            if !self.contains(client) {
                break;
            }
        }
        client
    }
}

/// Parses an address with or without a port: `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`. A zone, as in
/// `fe80::1%eth0`, is not part of the address.
fn address(node: &[u8]) -> Option<IpAddr> {
    let node = str::from_utf8(node).ok()?;
    let Some((before, zone)) = node.split_once('%') else {
        return address_without_zone(node);
    };
    let behind = zone.find(']').map_or("", |end| &zone[end..]);
    address_without_zone(&format!("{before}{behind}"))
}

fn address_without_zone(node: &str) -> Option<IpAddr> {
    if let Ok(with_port) = node.parse::<SocketAddr>() {
        return Some(with_port.ip().to_canonical());
    }
    let in_brackets = node
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address: IpAddr = in_brackets.unwrap_or(node).parse().ok()?;
    Some(address.to_canonical())
}

/// Parses an address or a network. IPv4 in IPv6 form becomes IPv4, as it does in the addresses of clients.
fn network(text: &str) -> Option<IpNet> {
    let network: IpNet = match text.parse::<IpAddr>() {
        Ok(address) => address.into(),
        Err(_) => text.parse().ok()?,
    };
    let canonical = IpNet::from(network.addr().to_canonical());
    let removed_bits = network.max_prefix_len() - canonical.max_prefix_len();
    let prefix = network.prefix_len().checked_sub(removed_bits)?;
    IpNet::new(canonical.addr(), prefix).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{FORWARDED, HeaderValue};

    use super::*;

    fn proxies(texts: &[&str]) -> Result<TrustedProxies, TrustedProxiesError> {
        TrustedProxies::parse(&texts.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    /// Asserts the client of a request from a peer with these values of `X-Forwarded-For`.
    #[track_caller]
    fn assert_client(peer: &str, values: &[&str], expected: &str) {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.append(X_FORWARDED_FOR, value);
        }
        let proxies = proxies(&["10.0.0.0/8", "2001:db8::1"]).unwrap();
        let client = proxies.client_address(peer.parse().unwrap(), &headers);
        assert_eq!(client.to_string(), expected, "{peer} {values:?}");
    }

    #[test]
    fn every_text_that_is_no_address_and_no_network_is_numbered() {
        assert!(proxies(&["10.0.0.1", "::1", "fd00::/8", "192.0.2.0/24", "::/8"]).is_ok());
        // No IPv4 address has the prefix of the last one in IPv6 form.
        let invalid = ["10.0.0.1", "proxy", "10.0.0.0/33", "::ffff:10.0.0.0/8"];
        let error = proxies(&invalid).unwrap_err().to_string();
        assert_eq!(
            error,
            "must contain IP addresses or networks such as 10.0.0.0/8, which number 2, 3, 4 is not"
        );
    }

    #[test]
    fn ipv4_in_ipv6_form_is_converted_to_ipv4() {
        for (ipv6, ipv4) in [
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.1/128", "10.0.0.1"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            assert_eq!(proxies(&[ipv6]), proxies(&[ipv4]), "{ipv6}");
        }
    }

    #[test]
    fn the_headers_of_an_untrusted_peer_and_forwarded_are_ignored() {
        for peer in ["192.0.2.9", "2001:db8::2"] {
            assert_client(peer, &["203.0.113.1"], peer);
        }
        assert_client("192.0.2.9", &[], "192.0.2.9");
        let value = HeaderValue::from_static("for=203.0.113.1");
        let headers = HeaderMap::from_iter([(FORWARDED, value)]);
        let peer = IpAddr::from([10, 0, 0, 1]);
        let proxies = proxies(&["10.0.0.1"]).unwrap();
        assert_eq!(proxies.client_address(peer, &headers), peer);
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
        let proxy = "10.0.0.1";
        for (values, expected) in [
            (&[][..], proxy),
            (&["203.0.113.1"], "203.0.113.1"),
            (
                &["198.51.100.1, 203.0.113.1,10.0.0.2 , 10.0.0.3"],
                "203.0.113.1",
            ),
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            (&["198.51.100.1", "203.0.113.1"], "203.0.113.1"),
            (&["::ffff:10.0.0.2,::ffff:192.0.2.1"], "192.0.2.1"),
        ] {
            assert_client(proxy, values, expected);
        }
        assert_client("2001:db8::1", &["203.0.113.1"], "203.0.113.1");
        for empty in ["", ",", " ,\t, ", &",".repeat(30_000)] {
            let with_empty = format!("203.0.113.1,{empty}, 10.0.0.2,{empty}");
            assert_client(proxy, &[&with_empty], "203.0.113.1");
            assert_client(proxy, &["203.0.113.1", empty], "203.0.113.1");
            assert_client(proxy, &[empty], proxy);
        }
    }

    #[test]
    fn an_element_without_an_address_ends_the_walk_and_hides_no_address_behind_it() {
        let proxy = "10.0.0.1";
        for element in ["unknown", "203.0.113", "é", "10.0.0.2.", "for=10.0.0.9"] {
            let between = format!("203.0.113.1, {element}, 10.0.0.2");
            assert_client(proxy, &[&between], "10.0.0.2");
            assert_client(proxy, &[&format!("203.0.113.1, {element}")], proxy);
        }
        for sent in ["\"", "\\", "\"203.0.113.1", "203.0.113.1, \"10.0.0.2"] {
            let before = format!("{sent}, 203.0.113.9");
            assert_client(proxy, &[&before], "203.0.113.9");
        }
    }

    #[test]
    fn an_address_can_have_brackets_and_a_port_and_any_other_identifier_has_no_address() {
        let ipv4 = "192.0.2.1 192.0.2.1:80 ::ffff:192.0.2.1 [::ffff:192.0.2.1]:80";
        let ipv6 = "2001:db8::1 [2001:db8::1] [2001:db8::1]:80";
        let zone = "fe80::1%lo fe80::1%3 [fe80::1%eth0] [fe80::1%eth0]:80 [fe80::1%25eth0]:80";
        let none = " _hidden unknown:80 [2001:db8::1 [2001:db8::1]80 192.0.2 %eth0 [fe80::1%lo [fe80::1%lo]80";
        for (nodes, expected) in [
            (ipv4, "192.0.2.1".parse().ok()),
            (ipv6, "2001:db8::1".parse().ok()),
            (zone, "fe80::1".parse().ok()),
            (none, None),
        ] {
            for node in nodes.split(' ') {
                assert_eq!(address(node.as_bytes()), expected, "{node:?}");
            }
        }
    }
}
