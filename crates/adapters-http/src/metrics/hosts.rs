//! The hosts for which `/metrics` is served.
//!
//! A browser on the machine of the service can open a page of a stranger, whose name then resolves to the loopback
//! address. Its requests have that name in `Host`.

use std::net::{IpAddr, SocketAddr};

use actix_web::{
    dev::RequestHead,
    http::{Version, header::HOST, uri::Authority},
};

/// The hosts for which `/metrics` is served on a listener.
pub(crate) enum Hosts {
    /// IP addresses and `localhost`, with or without a port; none in HTTP/1.0.
    OfThisMachine,
    All,
}

impl Hosts {
    /// On a loopback address, those of this machine.
    pub(crate) fn on(listener: SocketAddr) -> Self {
        if listener.ip().to_canonical().is_loopback() {
            Self::OfThisMachine
        } else {
            Self::All
        }
    }

    /// Returns whether the host of a request is one of them.
    pub(super) fn admit(&self, request: &RequestHead) -> bool {
        if matches!(self, Self::All) {
            return true;
        }
        if let Some(authority) = request.uri.authority() {
            return is_of_this_machine(authority.as_str());
        }
        match request.headers.get(HOST) {
            Some(host) => host.to_str().is_ok_and(is_of_this_machine),
            None => request.version < Version::HTTP_11,
        }
    }
}

fn is_of_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn request(target: &str, host: Option<&str>, version: Version) -> actix_web::HttpRequest {
        let request = TestRequest::with_uri(target).version(version);
        match host {
            Some(host) => request.insert_header((HOST, host)),
            None => request,
        }
        .to_http_request()
    }

    #[test]
    fn on_a_loopback_address_the_host_is_an_address_or_localhost() {
        let admits = |target, host, version| {
            Hosts::OfThisMachine.admit(request(target, host, version).head())
        };
        for host in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "10.0.0.11:8081",
            "[::1]",
            "[::1]:8081",
            "localhost",
            "LocalHost:8081",
            "localhost:",
        ] {
            for version in [Version::HTTP_10, Version::HTTP_11] {
                assert!(admits("/metrics", Some(host), version), "{host}");
            }
        }
        for host in [
            "",
            "store.example",
            "store.example:8081",
            "localhost.store.example",
            "127.0.0.1.store.example",
            "store",
            "127.1",
            "localhost:80:80",
        ] {
            for version in [Version::HTTP_10, Version::HTTP_11] {
                assert!(!admits("/metrics", Some(host), version), "{host}");
            }
        }
        assert!(admits("/metrics", None, Version::HTTP_10));
        assert!(!admits("/metrics", None, Version::HTTP_11));
        // The host of an absolute target counts (RFC 9112, section 3.2.2).
        for (target, host, expected) in [
            ("http://store.example/metrics", "localhost", false),
            ("http://localhost:8081/metrics", "store.example", true),
        ] {
            assert_eq!(
                admits(target, Some(host), Version::HTTP_11),
                expected,
                "{target}"
            );
        }
    }

    #[test]
    fn on_another_address_every_host_is_admitted() {
        for (listener, is_any) in [
            ("127.0.0.1:8081", false),
            ("127.0.0.2:8081", false),
            ("[::1]:8081", false),
            ("[::ffff:127.0.0.1]:8081", false),
            ("0.0.0.0:8081", true),
            ("[::]:8081", true),
            ("10.0.0.11:8081", true),
        ] {
            let hosts = Hosts::on(listener.parse().expect("an address"));
            let request = request("/metrics", Some("store.example"), Version::HTTP_11);
            assert_eq!(hosts.admit(request.head()), is_any, "{listener}");
        }
    }
}
