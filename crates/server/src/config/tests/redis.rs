//! The keys `keys.redis.*`. `adapters-redis` tests the parsing of URLs.

use animal_store_test_servers::Certificates;

use super::*;

const BACKEND: (&str, &str) = ("ANIMAL_STORE_KEYS__BACKEND", "redis");
/// Prefix of the variables of the files for TLS.
const TLS: &str = "ANIMAL_STORE_KEYS__REDIS__TLS_";

/// Returns the errors if API keys are in Redis and all else is valid.
fn redis_errors(variables: &[(&str, &str)]) -> Vec<String> {
    errors(&environment(&[variables, &[BACKEND]].concat()))
}

#[test]
fn a_valid_url_is_required() {
    let url = "keys.redis.url (ANIMAL_STORE_KEYS__REDIS__URL)";
    assert_eq!(redis_errors(&[]), [format!("{url} is required if keys.backend is redis")]);

    let [error] = &redis_errors(&[("ANIMAL_STORE_KEYS__REDIS__URL", "https://:top-secret@localhost")])[..] else {
        panic!("one error")
    };
    assert!(error.starts_with(url) && error.contains("redis://[user:password@]host"), "{error}");
    assert!(!error.contains("top-secret"), "{error}");
}

#[test]
fn a_password_can_contain_a_comma() {
    let sources = environment(&[BACKEND, ("ANIMAL_STORE_KEYS__REDIS__URL", "redis://shop:a,b@localhost:7/3")]);
    let config = Config::load(&sources).unwrap();

    let KeysConfig::Redis(redis) = &config.keys else { panic!("keys in Redis") };
    assert_eq!(redis.endpoint.to_string(), "localhost:7");
    assert!(!format!("{config:?}").contains("a,b"), "{config:?}");
}

#[test]
fn a_certificate_that_is_not_valid_is_reported_by_its_own_key() {
    let folder = tempfile::tempdir().unwrap();
    let good = Certificates::make(folder.path());
    let [certificate, key] = [&good.client, &good.client_key].map(|path| path.to_str().unwrap());
    for (files, expected) in [
        (&[("CA", "/nowhere")][..], "ca_file (…CA_FILE) names /nowhere, which cannot be read: No such file"),
        (&[("CA", "/dev/null")], "ca_file (…CA_FILE) contains no certificate in PEM format"),
        (&[("CA", key)], "ca_file (…CA_FILE) contains no certificate in PEM format"),
        (&[("CERT", certificate)], "cert_file (…CERT_FILE) and keys.redis.tls_key_file must be set together"),
        (&[("CERT", key), ("KEY", key)], "cert_file (…CERT_FILE) contains no certificate in PEM format"),
        (&[("CERT", certificate), ("KEY", "/dev/null")], "key_file (…KEY_FILE) contains no private key in PEM format"),
        (&[("CERT", certificate), ("KEY", "/nowhere")], "key_file (…KEY_FILE) names /nowhere, which cannot be read"),
    ] {
        let named: Vec<_> = files.iter().map(|(name, path)| (format!("{TLS}{name}_FILE"), path)).collect();
        let mut variables: Vec<_> = named.iter().map(|(name, path)| (&**name, **path)).collect();
        variables.push(("ANIMAL_STORE_KEYS__REDIS__URL", "rediss://localhost"));
        let found = redis_errors(&variables);
        let [error] = &found[..] else { panic!("{files:?}: {found:?}") };
        assert!(error.replace(TLS, "…").starts_with(&format!("keys.redis.tls_{expected}")), "{error}");
    }
}

#[test]
fn a_prefix_is_visible_ascii_and_not_empty() {
    for prefix in ["", "two words", "é"] {
        let url = ("ANIMAL_STORE_KEYS__REDIS__URL", "redis://localhost");
        let found = redis_errors(&[url, ("ANIMAL_STORE_KEYS__REDIS__PREFIX", prefix)]);
        assert!(matches!(&found[..], [error] if error.contains("must be 1 to 100 visible ASCII")), "{found:?}");
    }
}
