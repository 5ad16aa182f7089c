//! Reads `X-Forwarded-For` and `Forwarded` (RFC 7239). Clients can send both with any content: see `trusted_proxies`.

use std::net::IpAddr;

use actix_web::http::header::{FORWARDED, HeaderMap, X_FORWARDED_FOR};

/// Returns the address in each element, in the order of the proxies: `None` for an element without an address.
///
/// If both headers are present, `X-Forwarded-For` counts: more proxies set it, and they pass the other one through.
pub(super) fn addresses(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    if headers.contains_key(X_FORWARDED_FOR) {
        // This header has no quoted strings: a quotation mark of the client must not hide the comma of a proxy.
        let elements = headers.get_all(X_FORWARDED_FOR).flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
        elements.map(|element| address(trimmed(element)?)).collect()
    } else {
        let elements = headers.get_all(FORWARDED).flat_map(|line| split_unquoted(line.as_bytes(), b','));
        elements.map(|element| address(parameter_for(element?)?)).collect()
    }
}

/// Returns the value of the parameter `for`, if every parameter of the element is well-formed.
///
/// A client can send an unterminated quoted string, which hides the parameters that the proxy appends. The parts of
/// that string are malformed parameters, so their element does not count.
fn parameter_for(element: &str) -> Option<&str> {
    let mut found = None;
    for parameter in split_unquoted(element.as_bytes(), b';').flatten().filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        let value = unquoted(value)?;
        if name.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
            return None;
        }
    }
    found
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

/// Splits a text at a separator outside of quoted strings (RFC 9110, section 5.6.4), and removes spaces around the
/// parts. A part that is not UTF-8 is `None`.
fn split_unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = Option<&str>> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.split(move |&byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => return byte == separator && !quoted,
        }
        false
    });
    parts.map(trimmed)
}

fn trimmed(part: &[u8]) -> Option<&str> {
    str::from_utf8(part.trim_ascii()).ok()
}

/// Returns the content of a value, which may be one quoted string. Escapes are kept: no address contains one.
fn unquoted(value: &str) -> Option<&str> {
    let Some(rest) = value.strip_prefix('"') else { return (!value.contains('"')).then_some(value) };
    let content = rest.strip_suffix('"')?;
    let mut escaped = false;
    for byte in content.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return None,
            _ => {}
        }
    }
    (!escaped).then_some(content)
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

    #[track_caller]
    fn assert_for(elements: &str, expected: &[Option<&str>]) {
        let found: Vec<_> = split_unquoted(elements.as_bytes(), b',').flatten().map(parameter_for).collect();
        assert_eq!(found, expected, "{elements}");
    }

    #[test]
    fn the_parameter_for_can_be_quoted_and_anywhere_in_its_element() {
        assert_for("for=a", &[Some("a")]);
        assert_for(r#"proto=http;FOR="a" ; by="b;c,d" ;,for=e"#, &[Some("a"), Some("e")]);
        assert_for(r#"host="a\",for=x;\\";for=b"#, &[Some("b")]);
    }

    #[test]
    fn an_element_with_a_malformed_parameter_has_no_address() {
        for element in ["for", "for=a;x", "for=a;for=b", r#"for="a"b"#, r#"for=a"b""#, r#"for="a"#, r#"for="a\""#] {
            assert_for(element, &[None]);
        }
    }

    #[test]
    fn a_quoted_string_that_the_client_began_hides_the_address_of_the_proxy_but_forges_none() {
        assert_for(r#"for=203.0.113.1;x=", for=192.0.2.1"#, &[None]);
        assert_for(r#"for=203.0.113.1;x=", for="[2001:db8::1]""#, &[None]);
        assert_for(r#"for=203.0.113.1, x=", for="[2001:db8::1]";proto=http"#, &[Some("203.0.113.1"), None]);
        assert_for(r#"for=192.0.2.1;host="a,for=203.0.113.1""#, &[Some("192.0.2.1")]);
    }
}
