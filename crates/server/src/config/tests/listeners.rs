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

#[test]
fn the_api_can_listen_on_the_path_of_a_unix_socket() {
    let longest = format!("unix:/{}", "a".repeat(106));
    let deepest = format!("unix:/{}/s", "a".repeat(100));
    for address in ["unix:/run/animal-store/http.sock", &longest, &deepest] {
        assert_eq!(Config::load(&listeners(address, "127.0.0.1:80")).unwrap().http.listen.to_string(), address);
    }
    for (address, expected) in [
        (&*format!("{longest}a"), "at most 107 bytes"),
        (&*deepest.replace("/s", "a/s"), "in a folder of at most 101 bytes"),
        ("unix:http.sock", "the absolute path of a socket"),
        ("unix:", "the absolute path of a socket"),
        ("unix:/", "the absolute path of a socket"),
        ("unix:/run/", "the absolute path of a socket"),
        ("/run/http.sock", "or unix: with a path"),
    ] {
        let found = errors(&listeners(address, ""));
        assert!(matches!(&found[..], [error] if error.contains(expected)), "{address}: {found:?}");
    }
}

#[test]
fn the_management_listener_has_no_unix_socket() {
    let found = errors(&listeners("", "unix:/run/http.sock"));
    assert!(found.iter().any(|error| error.starts_with("management.listen (")), "{found:?}");
}

#[test]
fn a_unix_socket_has_a_mode_and_the_names_of_its_owner() {
    let unix = |mode: &str, owner: &str| {
        environment(&[("ANIMAL_STORE_HTTP__UNIX__MODE", mode), ("ANIMAL_STORE_HTTP__UNIX__OWNER", owner)])
    };
    for (owner, user, group) in
        [("", None, None), ("root", Some(0), None), ("root:root", Some(0), Some(0)), (":root", None, Some(0))]
    {
        let config = Config::load(&unix("0600", owner)).unwrap().http.unix;
        assert_eq!((config.mode, config.owner), (0o600, UnixSocketOwner { user, group }), "{owner:?}");
    }
    for (mode, owner, key) in [
        ("0888", "", "mode"),
        ("01777", "", "mode"),
        ("660", "no-such-user", "owner"),
        ("0", ":no-such-group", "owner"),
    ] {
        let found = errors(&unix(mode, owner));
        assert!(matches!(&found[..], [error] if error.starts_with(&format!("http.unix.{key} ("))), "{found:?}");
    }
}
