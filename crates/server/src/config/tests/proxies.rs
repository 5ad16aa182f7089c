//! The key `http.trusted_proxies`. `adapters-http/src/middleware/trusted_proxies.rs` tests the parsing.

use animal_store_adapters_http::TrustedProxies;

use super::*;

fn variable(text: &str) -> Sources {
    environment(&[("ANIMAL_STORE_HTTP__TRUSTED_PROXIES", text)])
}

#[test]
fn proxies_are_addresses_and_networks() {
    let expected = TrustedProxies::parse(&["10.0.0.0/8".to_owned(), "::1".to_owned()]).unwrap();
    let (list, _file) = file("[http]\ntrusted_proxies = ['10.0.0.0/8', '::1']\n");
    for sources in [list, variable("10.0.0.0/8, ::1")] {
        assert_eq!(Config::load(&sources).unwrap().http.trusted_proxies, expected);
    }
    assert_eq!(Config::load(&Sources::default()).unwrap().http.trusted_proxies, TrustedProxies::default());
}

#[test]
fn an_invalid_proxy_is_an_error() {
    let error = "http.trusted_proxies (ANIMAL_STORE_HTTP__TRUSTED_PROXIES) must contain IP addresses or networks \
                 such as 10.0.0.0/8, not \"proxy\"";
    assert_eq!(errors(&variable("10.0.0.1,proxy")), [error]);
}
