//! The addresses of the two listeners.

use super::*;

fn listeners(api: &str, management: &str) -> Sources {
    environment(&[
        ("ANIMAL_STORE_HTTP__LISTEN", api),
        ("ANIMAL_STORE_MANAGEMENT__LISTEN", management),
        ("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a"),
    ])
}

#[test]
fn addresses_that_overlap_are_refused() {
    for (a, b) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("0.0.0.0:80", "127.0.0.1:80"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("[::]:80", "127.0.0.1:80"),
        ("[::]:80", "0.0.0.0:80"),
        ("[::]:80", "[::1]:80"),
        ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
    ] {
        for (api, management) in [(a, b), (b, a)] {
            let expected = format!(
                "management.listen (ANIMAL_STORE_MANAGEMENT__LISTEN) must differ from http.listen \
                 (ANIMAL_STORE_HTTP__LISTEN): {management} and {api} overlap"
            );
            assert_eq!(errors(&listeners(api, management)), [expected]);
        }
    }
}

#[test]
fn other_addresses_are_accepted() {
    for (api, management) in [
        ("127.0.0.1:80", "127.0.0.1:81"),
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("[::]:0", "0.0.0.0:0"),
        ("127.0.0.1:80", "127.0.0.2:80"),
        ("127.0.0.1:80", "[::1]:80"),
        ("0.0.0.0:80", "[::1]:80"),
        ("127.0.0.1:80", ""),
    ] {
        assert!(Config::load(&listeners(api, management)).is_ok(), "{api} {management}");
    }
}

#[test]
fn the_default_address_of_the_other_listener_counts() {
    let expected = "management.listen (default) must differ from http.listen (ANIMAL_STORE_HTTP__LISTEN): \
                    127.0.0.1:8081 and 127.0.0.1:8081 overlap";
    assert_eq!(errors(&environment(&[("ANIMAL_STORE_HTTP__LISTEN", "127.0.0.1:8081")])), [expected]);
}

#[test]
fn an_invalid_address_is_one_error() {
    let found = errors(&listeners("here", "127.0.0.1:8080"));
    assert!(matches!(&found[..], [error] if error.starts_with("http.listen (")), "{found:?}");
}
