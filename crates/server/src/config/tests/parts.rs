//! The backends that values imply, and certificates, whose content the adapters test.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, time::UNIX_EPOCH};

use animal_store_test_servers::Certificates;
use secrecy::ExposeSecret;

use super::*;

#[test]
fn tokens_or_the_storage_imply_the_backend_of_keys() {
    let backend = |name| ("keys.backend", name);
    let storage = |name| ("storage.backend", name);
    for (settings, expected) in [
        (&[][..], "sqlite"),
        (&[backend("")], "sqlite"),
        (&[storage("memory")], "memory"),
        (&[TOKENS], "memory"),
        (&[storage("postgres")], "postgres"),
        (&[TOKENS, storage("postgres")], "memory"),
        (
            &[TOKENS, storage("postgres"), backend("postgres")],
            "postgres",
        ),
        (&[TOKENS, backend("sqlite")], "sqlite"),
        (&[TOKENS, backend("redis")], "redis"),
        (&[storage("memory"), backend("sqlite")], "sqlite"),
        (&[storage("sqlite"), backend("memory")], "memory"),
        (&[storage("postgres"), backend("redis")], "redis"),
        (&[storage("postgres"), backend("memory")], "memory"),
    ] {
        let config = config(&[settings, &[POSTGRES[1], REDIS[1]]].concat());
        let line = format!("keys.backend = \"{expected}\" # ");
        let lines = config.values.lines();
        let is_shown = lines.iter().any(|shown| shown.starts_with(&line));
        assert!(is_shown, "{settings:?}: {lines:#?}");
        let place = config.stores.api_keys.backend().place();
        assert!(place.starts_with(expected), "{settings:?}: {place}");
    }
}

#[test]
fn tokens_are_a_list_and_a_url_can_contain_commas() {
    let config = config(&[
        POSTGRES[0],
        ("storage.postgres.url", "postgres://shop:a,b@db/animals"),
        ("keys.memory.tokens", "0123456789012345678901, b,,"),
    ]);
    let ApiKeysConfig::Memory(memory::MemoryApiKeysConfig { tokens }) = &config.stores.api_keys
    else {
        panic!("{:?}", config.stores.api_keys)
    };
    let tokens: Vec<_> = tokens.iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(tokens, ["0123456789012345678901", "b"]);
    let warnings = config.values.warnings();
    assert!(
        matches!(&warnings[..], [short] if short.contains("number 2, that has fewer than 22")),
        "{warnings:?}"
    );
    let place = config.stores.pets.backend().place();
    assert_eq!(place, "postgres db:5432/animals");
}

#[test]
fn a_file_that_cannot_be_used_is_reported_beside_other_errors_of_its_section() {
    let sources = keys(&[
        ("http.workers", "0"),
        ("http.tls.cert_file", "/nowhere"),
        ("http.tls.key_file", "/nowhere"),
        ("keys.redis.lease", "0s"),
        ("keys.redis.url_file", "/nowhere"),
    ]);
    let errors = Config::load(&sources).unwrap_err();
    let errors = errors.to_string();
    let lines = errors.lines().skip(1);
    let names: Vec<_> = lines
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected = [
        "http.tls.cert_file",
        "http.workers",
        "keys.redis.lease",
        "keys.redis.url_file",
    ];
    assert_eq!(names, expected, "{errors}");
}

#[test]
fn files_that_cannot_be_used_together_are_an_error_of_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path());
    let [server, server_key, client, client_key] = [
        &files.server,
        &files.server_key,
        &files.client,
        &files.client_key,
    ]
    .map(|path| path.to_str().unwrap());
    let [cert, key, authority] = [
        "http.tls.cert_file",
        "http.tls.key_file",
        "http.tls.client_ca_file",
    ];
    let [redis_cert, redis_key, redis_authority] = [
        "keys.redis.tls_cert_file",
        "keys.redis.tls_key_file",
        "keys.redis.tls_ca_file",
    ];
    let unusable = "names a file that cannot be used: ";
    let no_certificate = "contains no certificate in PEM format";
    for (settings, refused, rule) in [
        (
            &[(cert, server)][..],
            cert,
            "and http.tls.key_file must be set together",
        ),
        (
            &[(key, server_key)],
            cert,
            "and http.tls.key_file must be set together",
        ),
        (
            &[(authority, server)],
            authority,
            "requires http.tls.cert_file",
        ),
        (&[(cert, server), (key, client_key)], key, unusable),
        (
            &[(cert, server), (key, server_key), (authority, server_key)],
            authority,
            unusable,
        ),
        (
            &[(redis_authority, client_key)],
            redis_authority,
            no_certificate,
        ),
        (
            &[(redis_cert, client)],
            redis_cert,
            "and keys.redis.tls_key_file must be set together",
        ),
        (
            &[(redis_key, "/dev/null")],
            redis_cert,
            "and keys.redis.tls_key_file must be set together",
        ),
        (
            &[(redis_cert, client_key), (redis_key, client_key)],
            redis_cert,
            no_certificate,
        ),
        (
            &[(redis_cert, client), (redis_key, "/dev/null")],
            redis_key,
            "contains no private key in PEM format",
        ),
    ] {
        assert_refused(settings, refused, rule);
        let url = ("keys.redis.url", "rediss://localhost");
        let with_redis = [settings, &[REDIS[0], url]].concat();
        assert_refused(&with_redis, refused, rule);
    }
}

#[test]
fn what_has_expired_is_a_warning_and_an_address_beyond_loopback_needs_a_certificate_or_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make_until(folder.path(), UNIX_EPOCH);
    fs::set_permissions(&files.server_key, Permissions::from_mode(0o600)).unwrap();
    let [server, key, authority] =
        [&files.server, &files.server_key, &files.authority].map(|path| path.to_str().unwrap());
    let everywhere = ("http.listen", "0.0.0.0:0");
    let tls = [
        ("http.tls.cert_file", server),
        ("http.tls.key_file", key),
        ("http.tls.client_ca_file", authority),
    ];
    let expired = [
        "http.tls.cert_file (ANIMAL_STORE_HTTP__TLS__CERT_FILE) has expired: clients refuse it",
        "http.tls.client_ca_file (ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE) contains an authority that has expired: its \
         certificates are still accepted",
    ];
    for (settings, is_unencrypted, warnings) in [
        (&[][..], false, &[][..]),
        (&[everywhere], true, &[]),
        (&[everywhere, tls[0], tls[1]], false, &expired[..1]),
        (&tls, false, &expired),
        (
            &[everywhere, ("http.trusted_proxies", "10.0.0.1")],
            false,
            &[],
        ),
    ] {
        let config = config(settings);
        let found = config.is_unencrypted(config.listen);
        assert_eq!(found, is_unencrypted, "{settings:?}");
        assert_eq!(config.values.warnings(), warnings, "{settings:?}");
    }
}
