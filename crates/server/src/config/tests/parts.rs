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
            config(&settings).keys.to_string().split(' ').next(),
            Some(expected),
            "{settings:?}"
        );
    }
}

#[test]
fn a_command_fails_on_the_sections_that_it_uses_and_warns_of_the_others() {
    let opens = [
        |sections: &mut Sections| sections.management.clone().map(drop),
        |sections: &mut Sections| sections.storage().map(drop),
        |sections: &mut Sections| sections.keys().map(drop),
        |sections: &mut Sections| sections.tls().map(drop),
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
            let mut sections = Sections::read(&sources);
            assert_eq!(open(&mut sections).is_err(), is_refused, "{settings:?}");
            let warnings = sections.warnings();
            assert_eq!(!warnings.is_empty(), is_warned, "{warnings:?}");
        }
        assert!(Config::load(&sources).is_err(), "{settings:?}");
    }
    let (broken, _file) = file("[http\n");
    for open in opens {
        assert!(open(&mut Sections::read(&broken)).is_err());
    }
}

#[test]
fn what_check_config_prints_is_the_same_configuration_and_names_each_source() {
    let secret = file("postgres://db/animals\n").1;
    let path = secret.path().to_str().unwrap();
    let (mut sources, toml) =
        file("[http]\ncors_origins = ['https://a.example', 'https://b.example']\nworkers = 3\n");
    sources.environment = keys(&[
        ("log.filter", "info,a\"\\b\u{7f}=off"),
        ("storage.postgres.url_file", path),
        TOKENS,
        ("traces.sample_ratio", "0.5"),
    ])
    .environment;
    sources.flags = vec![("http.listen".to_owned(), "127.0.0.1:0".to_owned())];
    let lines = Config::load(&sources).unwrap().lines;
    for expected in [
        "http.listen = \"127.0.0.1:0\" # --set".to_owned(),
        format!("http.workers = 3 # {}, line 3", toml.path().display()),
        format!(
            "http.cors_origins = \"https://a.example,https://b.example\" # {}, line 2",
            toml.path().display()
        ),
        "http.keep_alive = \"75s\" # default".to_owned(),
        format!("storage.postgres.url_file = {path:?} # ANIMAL_STORE_STORAGE__POSTGRES__URL_FILE"),
        "storage.postgres.migrate_url = \"\" # default".to_owned(),
        "keys.backend = \"memory\" # keys.memory.tokens".to_owned(),
        "#keys.memory.tokens = \"(set)\" # ANIMAL_STORE_KEYS__MEMORY__TOKENS".to_owned(),
        "traces.sample_ratio = 0.5 # ANIMAL_STORE_TRACES__SAMPLE_RATIO".to_owned(),
    ] {
        assert!(lines.contains(&expected), "{expected}: {lines:#?}");
    }
    let (printed, _file) = file(&lines.join("\n"));
    let [printed, original] = [&printed, &sources].map(values);
    let differing: Vec<_> = printed
        .iter()
        .zip(&original)
        .filter(|(a, b)| a != b)
        .map(|(_, key)| key)
        .collect();
    assert_eq!(
        differing,
        [&("keys.memory.tokens".to_owned(), "a".to_owned())]
    );
}

#[test]
fn the_configuration_file_that_config_init_prints_has_every_key_and_its_default() {
    let set = [("storage.sqlite.path".to_owned(), "/data/a.db".to_owned())];
    let text = SCHEMA.template(TEMPLATE_HEAD, &set).unwrap();
    assert!(
        text.contains("\nstorage.sqlite.path = \"/data/a.db\"\n"),
        "{text}"
    );
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
    for name in ["http.lisen", "keys.memory.tokens"] {
        let set = [(name.to_owned(), "top-secret".to_owned())];
        let refused = SCHEMA.template(TEMPLATE_HEAD, &set).unwrap_err();
        assert!(
            refused.starts_with(name) && !refused.contains("top-secret"),
            "{refused}"
        );
    }
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
