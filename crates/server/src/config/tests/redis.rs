//! The keys `keys.redis.*`. `adapters-redis` tests the parsing of URLs.

use super::*;

const BACKEND: (&str, &str) = ("ANIMAL_STORE_KEYS__BACKEND", "redis");

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
fn certificates_are_read_and_checked() {
    let pem = tempfile::NamedTempFile::new().unwrap();
    let path = pem.path().to_str().unwrap();
    let url = ("ANIMAL_STORE_KEYS__REDIS__URL", "rediss://localhost");
    let (cert, key) = ("ANIMAL_STORE_KEYS__REDIS__TLS_CERT_FILE", "ANIMAL_STORE_KEYS__REDIS__TLS_KEY_FILE");
    for (variables, expected) in [
        (&[url, ("ANIMAL_STORE_KEYS__REDIS__TLS_CA_FILE", "/nowhere")][..], "keys.redis.tls_ca_file ("),
        (&[url, (cert, path)], "keys.redis.tls_cert_file ("),
        (&[url, (cert, path), (key, path)], "keys.redis.url ("),
    ] {
        let found = redis_errors(variables);
        assert!(found.iter().any(|error| error.starts_with(expected)), "{found:?}");
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
