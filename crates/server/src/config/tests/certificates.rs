//! Certificates of the API and of clients of Redis. The crates of the adapters test the content of the files.

use std::time::UNIX_EPOCH;

use animal_store_test_servers::Certificates;

use super::*;

#[test]
fn files_that_cannot_be_used_together_are_an_error_of_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path());
    let [server, server_key, client, client_key] =
        [&files.server, &files.server_key, &files.client, &files.client_key].map(|path| path.to_str().unwrap());
    let [cert, key, authority] = ["http.tls.cert_file", "http.tls.key_file", "http.tls.client_ca_file"];
    let [redis_cert, redis_key, redis_authority] =
        ["keys.redis.tls_cert_file", "keys.redis.tls_key_file", "keys.redis.tls_ca_file"];
    let unusable = "names a file that cannot be used: ";
    let no_certificate = "contains no certificate in PEM format";
    for (settings, refused, rule) in [
        (&[(cert, server)][..], cert, "and http.tls.key_file must be set together"),
        (&[(key, server_key)], cert, "and http.tls.key_file must be set together"),
        (&[(authority, server)], authority, "requires http.tls.cert_file"),
        (&[(cert, "/nowhere"), (key, server_key)], cert, &format!("{unusable}/nowhere cannot be read")),
        (&[(cert, server), (key, client_key)], key, unusable),
        (&[(cert, server), (key, server_key), (authority, server_key)], authority, unusable),
        (&[(redis_authority, "/dev/null")], redis_authority, no_certificate),
        (&[(redis_authority, client_key)], redis_authority, no_certificate),
        (&[(redis_cert, client)], redis_cert, "and keys.redis.tls_key_file must be set together"),
        (&[(redis_key, "/dev/null")], redis_cert, "and keys.redis.tls_key_file must be set together"),
        (&[(redis_cert, client_key), (redis_key, client_key)], redis_cert, no_certificate),
        (&[(redis_cert, client), (redis_key, "/dev/null")], redis_key, "contains no private key in PEM format"),
        (&[(redis_cert, client), (redis_key, "/nowhere")], redis_key, "names /nowhere, which cannot be read"),
    ] {
        assert_refused(settings, refused, rule);
        let with_redis = [settings, &[REDIS[0], ("keys.redis.url", "rediss://localhost")]].concat();
        assert_refused(&with_redis, refused, rule);
    }
    let config = config(&[(cert, server), (key, server_key)]);
    assert_eq!(config.warnings, Vec::<String>::new());
    assert!(!format!("{config:?}").contains("PRIVATE"), "{config:?}");
}

#[test]
fn an_expired_certificate_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make_until(folder.path(), UNIX_EPOCH);
    let [server, key] = [&files.server, &files.server_key].map(|path| path.to_str().unwrap());
    let config = config(&[("http.tls.cert_file", server), ("http.tls.key_file", key)]);
    let expected = "http.tls.cert_file (ANIMAL_STORE_HTTP__TLS__CERT_FILE) has expired: clients refuse it";
    assert_eq!(config.warnings, [expected]);
}

#[test]
fn an_address_beyond_loopback_needs_tls_or_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path());
    let [server, key] = [&files.server, &files.server_key].map(|path| path.to_str().unwrap());
    let everywhere = ("http.listen", "0.0.0.0:0");
    for (settings, expected) in [
        (&[][..], false),
        (&[everywhere], true),
        (&[everywhere, ("http.tls.cert_file", server), ("http.tls.key_file", key)], false),
        (&[everywhere, ("http.trusted_proxies", "10.0.0.1")], false),
    ] {
        let http = config(settings).http;
        assert_eq!(http.is_unencrypted(http.listen), expected, "{settings:?}");
    }
}
