//! Reads `X-Forwarded-For`. Clients can send it with any content: see `trusted_proxies`.

use std::net::IpAddr;

use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};

/// Returns the address in each element, in the order of the proxies: `None` for an element without an address.
pub(super) fn addresses(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    // There are no quoted strings: a quotation mark of the client must not hide the comma of a proxy.
    let elements = headers.get_all(X_FORWARDED_FOR).flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    elements.map(|element| address(str::from_utf8(element.trim_ascii()).ok()?)).collect()
}

/// Parses an address with or without a port: `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address(node: &str) -> Option<IpAddr> {
    let address = match node.strip_prefix('[') {
        Some(bracketed) => {
            let (address, port) = bracketed.split_once(']')?;
            (port.is_empty() || port.starts_with(':')).then_some(address)?
        }
        // A second colon is part of an IPv6 address.
        None => node.split_once(':').filter(|(_, port)| !port.contains(':')).map_or(node, |(address, _)| address),
    };
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_address(node: &str, expected: Option<&str>) {
        assert_eq!(address(node).map(|address| address.to_string()).as_deref(), expected, "{node:?}");
    }

    #[test]
    fn an_address_can_have_brackets_and_a_port() {
        for node in ["192.0.2.1", "192.0.2.1:80", "192.0.2.1:_port", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"] {
            assert_address(node, Some("192.0.2.1"));
        }
        for node in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"] {
            assert_address(node, Some("2001:db8::1"));
        }
        assert_address("::1", Some("::1"));
        assert_address("1::", Some("1::"));
    }

    #[test]
    fn any_other_identifier_has_no_address() {
        for node in ["", "unknown", "_hidden", "unknown:80", "[2001:db8::1", "[2001:db8::1]80", "192.0.2", "host:80"] {
            assert_address(node, None);
        }
    }
}
