//! Values of backends that are not selected. They are checked, and none of them is required.

use super::*;

#[test]
fn values_of_a_backend_that_is_not_selected_are_checked() {
    for (variables, key) in [
        (&[("STORAGE__BACKEND", "memory"), ("STORAGE__SQLITE__TIMEOUT", "soon")][..], "storage.sqlite.timeout"),
        (&[("STORAGE__POSTGRES__URL", "mysql://shop:top-secret@db")], "storage.postgres.url"),
        (&[("STORAGE__POSTGRES__MIGRATE_URL", "top-secret")], "storage.postgres.migrate_url"),
        (&[("STORAGE__POSTGRES__URL_FILE", "/nowhere")], "storage.postgres.url"),
        (&[("STORAGE__POSTGRES__TIMEOUT", "soon")], "storage.postgres.timeout"),
        (&[("KEYS__REDIS__URL", "http://:top-secret@redis")], "keys.redis.url"),
        (&[("KEYS__REDIS__LEASE", "soon")], "keys.redis.lease"),
        (&[("KEYS__REDIS__TLS_CA_FILE", "/nowhere")], "keys.redis.tls_ca_file"),
        (&[("KEYS__REDIS__TLS_CA_FILE", "/dev/null")], "keys.redis.tls_ca_file"),
        (&[("KEYS__REDIS__TLS_KEY_FILE", "/dev/null")], "keys.redis.tls_cert_file"),
        (
            &[
                ("KEYS__BACKEND", "redis"),
                ("KEYS__REDIS__URL", "redis://localhost"),
                ("KEYS__MEMORY__TOKENS", "top secret"),
            ],
            "keys.memory.tokens",
        ),
    ] {
        let named: Vec<_> = variables.iter().map(|(name, value)| (format!("ANIMAL_STORE_{name}"), value)).collect();
        let variables: Vec<_> = named.iter().map(|(name, value)| (&**name, **value)).collect();
        let found = errors(&environment(&variables));
        let [error] = &found[..] else { panic!("{variables:?}: {found:?}") };
        assert!(error.starts_with(&format!("{key} (")) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_backend_that_is_not_selected_requires_nothing() {
    let unused = environment(&[
        ("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE", "check"),
        ("ANIMAL_STORE_KEYS__REDIS__LEASE", "1s"),
    ]);
    assert!(Config::load(&unused).is_ok());

    let redis = environment(&[
        ("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0"),
        ("ANIMAL_STORE_KEYS__BACKEND", "redis"),
        ("ANIMAL_STORE_KEYS__REDIS__URL", "redis://localhost"),
    ]);
    assert!(Config::load(&redis).is_ok());
}
