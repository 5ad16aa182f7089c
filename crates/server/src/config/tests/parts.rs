//! The backends that values imply, certificates, whose content the adapters test, the part of the configuration that a
//! command reads, and what it prints.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    time::UNIX_EPOCH,
};

use animal_store_test_servers::Certificates;

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
        let settings = [settings, &[POSTGRES[1], REDIS[1]]].concat();
        let (line, lines) = (
            format!("keys.backend = \"{expected}\" # "),
            lines(&settings),
        );
        assert!(
            lines.iter().any(|shown| shown.starts_with(&line)),
            "{settings:?}: {lines:#?}"
        );
        assert_eq!(
            config(&settings)
                .api_keys
                .backend()
                .place()
                .split(' ')
                .next(),
            Some(expected),
            "{settings:?}"
        );
    }
}

#[test]
fn a_command_fails_on_the_sections_that_it_uses_and_warns_of_the_others() {
    let opens: [fn(&mut Values) -> Option<()>; 4] = [
        |values| {
            read_management(values);
            Some(())
        },
        |values| StorageConfig::read(values).map(drop),
        |values| ApiKeysConfig::read(values).map(drop),
        |values| {
            read_tls_identity(values);
            Some(())
        },
    ];
    // The commands that are refused: `health`, of pets, `keys`, the certificate of `doctor`.
    for (settings, refused, is_warned) in [
        // A file that no command opens is not known to be broken.
        (
            &[
                ("http.tls.cert_file", "/nowhere"),
                ("http.tls.key_file", "/nowhere"),
            ][..],
            [false, false, false, true],
            false,
        ),
        (
            &[("storage.postgres.url_file", "/nowhere")],
            [false, true, false, false],
            false,
        ),
        (
            &[("keys.redis.url_file", "/nowhere")],
            [false, false, true, false],
            false,
        ),
        (
            &[("storage.backend", "memory"), ("http.listen", "0.0.0.0:80")],
            [false; 4],
            false,
        ),
        (&[("http.workers", "0")], [false, false, false, true], true),
        (
            &[("http.lisen", "127.0.0.1:80")],
            [false, false, false, true],
            true,
        ),
        (
            &[("management.lisen", "127.0.0.1:80")],
            [true, false, false, false],
            true,
        ),
        (
            &[("storage.backend", "postgres"), TOKENS],
            [false, true, false, false],
            true,
        ),
        (
            &[("storage.sqlite.path", ""), REDIS[0], REDIS[1]],
            [false, true, false, false],
            true,
        ),
        // The source of API keys can be the storage.
        (
            &[("storage.backend", "disk")],
            [false, true, true, false],
            true,
        ),
        (
            &[("storage.backend", "postgres")],
            [false, true, true, false],
            true,
        ),
        // It can be a misspelt section of any command.
        (&[("kyes.backend", "redis")], [true; 4], true),
    ] {
        let sources = keys(settings);
        for (open, is_refused) in opens.into_iter().zip(refused) {
            let mut values = super::read(&sources);
            assert_eq!(values.open(open).is_err(), is_refused, "{settings:?}");
            let has_warnings = !values.warnings().is_empty();
            assert_eq!(
                has_warnings || is_refused,
                is_warned || is_refused,
                "{settings:?}"
            );
        }
        assert!(Config::load(&sources).is_err(), "{settings:?}");
    }
    let (broken, _file) = file("[http\n");
    for open in opens {
        assert!(super::read(&broken).open(open).is_err());
    }
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
    let settings: Vec<_> = errors
        .lines()
        .into_iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let expected = [
        "http.tls.cert_file",
        "http.workers",
        "keys.redis.lease",
        "keys.redis.url",
    ];
    assert_eq!(settings, expected, "{errors}");
}

#[test]
fn the_configuration_file_that_config_init_prints_has_every_key_and_its_default() {
    let text = SCHEMA.template(TEMPLATE_HEAD, &[]).unwrap();
    let uncommented = text.lines().map(|line| match line.strip_prefix('#') {
        Some(key) if !key.starts_with(' ') => key,
        _ => line,
    });
    let uncommented = uncommented.collect::<Vec<_>>().join("\n");
    assert_eq!(values(&file(&uncommented).0), values(&file(&text).0));
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
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
        (
            &[(cert, "/nowhere"), (key, server_key)],
            cert,
            &format!("{unusable}/nowhere cannot be read"),
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
        (
            &[(redis_cert, client), (redis_key, "/nowhere")],
            redis_key,
            "names /nowhere, which cannot be read",
        ),
    ] {
        assert_refused(settings, refused, rule);
        let with_redis = [
            settings,
            &[REDIS[0], ("keys.redis.url", "rediss://localhost")],
        ]
        .concat();
        assert_refused(&with_redis, refused, rule);
    }
}

#[test]
fn an_expired_certificate_is_a_warning_and_an_address_beyond_loopback_needs_one_or_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make_until(folder.path(), UNIX_EPOCH);
    fs::set_permissions(&files.server_key, Permissions::from_mode(0o600)).unwrap();
    let [server, key] = [&files.server, &files.server_key].map(|path| path.to_str().unwrap());
    let (everywhere, cert, key) = (
        ("http.listen", "0.0.0.0:0"),
        ("http.tls.cert_file", server),
        ("http.tls.key_file", key),
    );
    for (settings, is_unencrypted, has_expired) in [
        (&[][..], false, false),
        (&[everywhere], true, false),
        (&[everywhere, cert, key], false, true),
        (
            &[everywhere, ("http.trusted_proxies", "10.0.0.1")],
            false,
            false,
        ),
    ] {
        let config = config(settings);
        assert_eq!(
            config.is_unencrypted(config.listen),
            is_unencrypted,
            "{settings:?}"
        );
        let expected =
            "http.tls.cert_file (ANIMAL_STORE_HTTP__TLS__CERT_FILE) has expired: clients refuse it";
        assert_eq!(
            config.warnings,
            [expected][..usize::from(has_expired)],
            "{settings:?}"
        );
    }
}

#[test]
fn an_expired_authority_of_clients_is_a_warning() {
    let [folder, expired] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let files = Certificates::make(folder.path());
    let authority = Certificates::make_until(expired.path(), UNIX_EPOCH).authority;
    fs::set_permissions(&files.server_key, Permissions::from_mode(0o600)).unwrap();
    let [cert, key, authority] =
        [&files.server, &files.server_key, &authority].map(|path| path.to_str().unwrap());
    let config = config(&[
        ("http.tls.cert_file", cert),
        ("http.tls.key_file", key),
        ("http.tls.client_ca_file", authority),
    ]);
    let expected = "http.tls.client_ca_file (ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE) contains an authority that has \
        expired: its certificates are still accepted";
    assert_eq!(config.warnings, [expected]);
}
