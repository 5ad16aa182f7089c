//! The keys `http.tls.*`. `adapters-http` tests the content of the files.

use std::time::UNIX_EPOCH;

use animal_store_test_servers::Certificates;

use super::*;

/// Prefix of the variables.
const TLS: &str = "ANIMAL_STORE_HTTP__TLS__";

fn tls(files: &[(&str, &str)]) -> Sources {
    let named: Vec<_> = files.iter().map(|(name, path)| (format!("{TLS}{name}_FILE"), path)).collect();
    environment(&named.iter().map(|(name, path)| (&**name, **path)).collect::<Vec<_>>())
}

#[test]
fn files_that_cannot_be_used_together_are_an_error_of_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path());
    let [server, key, client_key] =
        [&files.server, &files.server_key, &files.client_key].map(|path| path.to_str().unwrap());
    for (files, expected) in [
        (&[("CERT", server)][..], "cert_file (…CERT_FILE) and http.tls.key_file must be set together"),
        (&[("KEY", key)], "cert_file (…CERT_FILE) and http.tls.key_file must be set together"),
        (&[("CLIENT_CA", server)], "client_ca_file (…CLIENT_CA_FILE) requires http.tls.cert_file"),
        (
            &[("CERT", "/nowhere"), ("KEY", key)],
            "cert_file (…CERT_FILE) names a file that cannot be used: /nowhere cannot be read",
        ),
        (&[("CERT", server), ("KEY", client_key)], "key_file (…KEY_FILE) names a file that cannot be used: "),
        (
            &[("CERT", server), ("KEY", key), ("CLIENT_CA", key)],
            "client_ca_file (…CLIENT_CA_FILE) names a file that cannot be used: ",
        ),
    ] {
        let found = errors(&tls(files));
        let [error] = &found[..] else { panic!("{files:?}: {found:?}") };
        assert!(error.replace(TLS, "…").starts_with(&format!("http.tls.{expected}")), "{error}");
    }
    let config = Config::load(&tls(&[("CERT", server), ("KEY", key)])).unwrap();
    assert_eq!(config.warnings.len(), 0);
    assert!(!format!("{config:?}").contains("PRIVATE"), "{config:?}");
}

#[test]
fn an_expired_certificate_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make_until(folder.path(), UNIX_EPOCH);
    let [server, key] = [&files.server, &files.server_key].map(|path| path.to_str().unwrap());
    let config = Config::load(&tls(&[("CERT", server), ("KEY", key)])).unwrap();
    let expected = "http.tls.cert_file (ANIMAL_STORE_HTTP__TLS__CERT_FILE) has expired: clients refuse it";
    assert_eq!(config.warnings, [expected]);
}

#[test]
fn an_address_beyond_loopback_needs_tls_or_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path());
    let [server, key] = [&files.server, &files.server_key].map(|path| path.to_str().unwrap());
    for (listen, proxies, has_tls, expected) in [
        ("127.0.0.1:0", "", false, false),
        ("0.0.0.0:0", "", false, true),
        ("0.0.0.0:0", "", true, false),
        ("0.0.0.0:0", "10.0.0.1", false, false),
    ] {
        let mut sources = if has_tls { tls(&[("CERT", server), ("KEY", key)]) } else { Sources::default() };
        for (name, value) in [("LISTEN", listen), ("TRUSTED_PROXIES", proxies)] {
            sources.environment.push((format!("ANIMAL_STORE_HTTP__{name}").into(), value.into()));
        }
        let http = Config::load(&sources).unwrap().http;
        assert_eq!(http.is_unencrypted(http.listen), expected, "{listen} {proxies} {has_tls}");
    }
}
