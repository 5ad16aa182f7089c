use std::net::IpAddr;

/// Whether a host of a URL is this machine: `localhost`, or a loopback address.
pub fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_localhost_and_loopback_addresses_are_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST",
            "127.0.0.1",
            "127.1.2.3",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "db",
            "localhost.example",
            "192.0.2.1",
            "0.0.0.0",
            "[::]",
            "2001:db8::1",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
