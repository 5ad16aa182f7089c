//! The source that an error names, errors of the sources themselves, and secrets, which no error and no output shows.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path};

use animal_store_adapters_http::AllowedOrigins;

use super::*;

const RULE: &str = "must be auto or a whole number from 1 to 512, not \"0\"";

#[test]
fn values_are_texts_numbers_or_lists() {
    for value in ["3", "'3'", "0x3", " ' 3 ' "] {
        let (sources, _file) = file(&format!("http = {{ workers = {value} }}\n"));
        assert_eq!(
            Config::load(&sources).unwrap().http.connections.workers,
            3,
            "{value}"
        );
    }
    let (sources, _file) = file("[keys.memory]\ntokens = [2026-01-01, 7, 2.5, true, '', 'a']\n");
    assert_eq!(
        tokens(&Config::load(&sources).unwrap()),
        ["2026-01-01", "7", "2.5", "true", "a"]
    );
    let origins = config(&[(
        "http.cors_origins",
        "https://a.example, https://b.example:8443 ,,",
    )])
    .http
    .origins;
    let expected = ["https://a.example", "https://b.example:8443"].map(str::to_owned);
    assert_eq!(origins, Some(AllowedOrigins::These(expected.to_vec())));
}

#[test]
fn an_error_names_the_source_that_wins_and_the_line_of_a_file() {
    let (mut sources, toml) = file(
        "# comment\n[http]\n\nworkers = 0\ncors_origins = [['a']]\n[log]\nformat = [\n  'text',\n  'x',\n]\n",
    );
    let name = toml.path().display();
    let others = [
        format!("http.cors_origins ({name}, line 5) must be a list of texts"),
        format!("log.format ({name}, line 7) must be auto or text or json, not \"text,x\""),
    ];
    let expected = |source: &str| {
        [
            others[0].clone(),
            format!("http.workers ({source}) {RULE}"),
            others[1].clone(),
        ]
    };
    assert_eq!(errors(&sources), expected(&format!("{name}, line 4")));
    sources
        .environment
        .push(("ANIMAL_STORE_HTTP__WORKERS".into(), "0".into()));
    assert_eq!(errors(&sources), expected("ANIMAL_STORE_HTTP__WORKERS"));
    sources.flags.push(("http.workers".into(), "0".into()));
    assert_eq!(errors(&sources), expected("--set"));
}

#[test]
fn a_file_that_cannot_be_read_is_reported_without_its_text_and_makes_no_value_missing() {
    let mut sources = keys(&[
        ("http.listen", "0.0.0.0:0"),
        ("storage.backend", "postgres"),
        ("http.workers", "0"),
    ]);
    let (_, open) = file("[keys.memory]\n\ntokens = ['top-secret\n");
    let (_, double) = file("[keys]\nmemory = {\"é\" = 'top-secret', \"é\" = 1}\n");
    for (path, error) in [
        (
            Path::new("/nowhere"),
            ": cannot be read: No such file or directory (os error 2)",
        ),
        (
            open.path(),
            ", line 3, column 22: not valid TOML: unclosed array, expected `]`",
        ),
        (
            double.path(),
            ", line 2, column 31: not valid TOML: duplicate key",
        ),
    ] {
        sources.file = Some(path.to_owned());
        let error = format!("{}{error}", path.display());
        assert_eq!(
            errors(&sources),
            [
                error,
                format!("http.workers (ANIMAL_STORE_HTTP__WORKERS) {RULE}")
            ]
        );
    }
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_key() {
    let (mut sources, toml) =
        file("colour = 'red'\n[http]\nlisen = ''\n[keys.memory]\ntoken_file = ''\n");
    let unlike = [
        "HTTP_LISTEN",
        "HTTP__workers",
        "PORT",
        "STORAGE__POSTGRES__POOL_SIZE",
        "keys.backend",
    ];
    sources.environment = unlike
        .map(|name| (format!("ANIMAL_STORE_{name}").into(), "".into()))
        .to_vec();
    sources
        .environment
        .push(("OTHER_HTTP__LISTEN".into(), "not ours".into()));
    sources.flags = ["HTTP.Workers", "log.level", "log.fomat", "x.format"]
        .map(|name| (name.to_owned(), "1".to_owned()))
        .to_vec();
    let name = toml.path().display();
    assert_eq!(
        errors(&sources),
        [
            "HTTP.Workers (--set) is unknown: did you mean http.workers?".to_owned(),
            "HTTP__workers (ANIMAL_STORE_HTTP__workers) is unknown: did you mean ANIMAL_STORE_HTTP__WORKERS?"
                .to_owned(),
            format!("colour ({name}, line 1) is unknown"),
            format!("http.lisen ({name}, line 3) is unknown: did you mean http.listen?"),
            "http_listen (ANIMAL_STORE_HTTP_LISTEN) is unknown: did you mean ANIMAL_STORE_HTTP__LISTEN?".to_owned(),
            format!("keys.memory.token_file ({name}, line 5) is unknown: did you mean keys.memory.tokens_file?"),
            "keys__backend (ANIMAL_STORE_keys.backend) is unknown: did you mean ANIMAL_STORE_KEYS__BACKEND?".to_owned(),
            "log.fomat (--set) is unknown: did you mean log.format?".to_owned(),
            "log.level (--set) is unknown".to_owned(),
            "port (ANIMAL_STORE_PORT) is unknown".to_owned(),
            "storage.postgres.pool_size (ANIMAL_STORE_STORAGE__POSTGRES__POOL_SIZE) is unknown".to_owned(),
            "x.format (--set) is unknown".to_owned(),
        ]
    );
}

#[test]
fn a_file_that_others_can_write_or_a_secret_that_they_can_read_is_a_warning() {
    let (_, secret) = file("top-secret");
    let path = secret.path().display();
    let in_file = format!("keys.memory.tokens_file = '{path}'");
    for (text, mode, secret_mode, warnings) in [
        ("keys.memory.tokens = 'top-secret'", 0o666, 0o600, 1),
        ("keys.memory.tokens = 'top-secret'", 0o602, 0o600, 1),
        ("keys.memory.tokens = 'top-secret'", 0o644, 0o600, 0),
        ("http.workers = 1", 0o666, 0o600, 1),
        (&in_file, 0o600, 0o640, 0),
        (&in_file, 0o600, 0o644, 1),
        (&in_file, 0o600, 0o602, 1),
        (&in_file, 0o622, 0o666, 3),
    ] {
        let (sources, toml) = file(text);
        std::fs::set_permissions(toml.path(), Permissions::from_mode(mode)).unwrap();
        std::fs::set_permissions(secret.path(), Permissions::from_mode(secret_mode)).unwrap();
        let found = Config::load(&sources).unwrap().warnings;
        assert_eq!(
            found.len(),
            warnings,
            "{text} {mode:o} {secret_mode:o}: {found:?}"
        );
        let first = format!(
            "{} (mode {mode:03o}): run chmod go-w ",
            toml.path().display()
        );
        assert_eq!(
            mode & 0o022 != 0,
            found.iter().any(|line| line.contains(&first)),
            "{found:?}"
        );
    }
}

/// A reload finds another content of a file, because the value of the key is the content.
#[test]
fn a_secret_can_be_in_a_variable_a_list_or_a_file() {
    let (list, _file) = file("[keys.memory]\ntokens = ['a', 'b']\n");
    let [tokens_file, url_file] =
        ["a\nb\n", "postgres://shop:a,b@db/animals\n"].map(|text| file(text).1);
    let [tokens_file, url_file] =
        [&tokens_file, &url_file].map(|file| file.path().to_str().unwrap());
    let in_file = keys(&[("keys.memory.tokens_file", tokens_file)]);
    for sources in [&keys(&[("keys.memory.tokens", "a, b,,")]), &list, &in_file] {
        assert_eq!(tokens(&Config::load(sources).unwrap()), ["a", "b"]);
    }
    assert!(values(&in_file).contains(&("keys.memory.tokens".to_owned(), "a\nb".to_owned())));
    let postgres = config(&[POSTGRES[0], TOKENS, ("storage.postgres.url_file", url_file)]);
    assert_eq!(postgres.storage.to_string(), "postgres db:5432/animals");
    let redis = config(&[
        REDIS[0],
        ("keys.redis.url", "redis://shop:a,b@localhost:7/3"),
    ]);
    assert_eq!(redis.keys.to_string(), "redis localhost:7");
}

/// The listener requires tokens, and the backend requires a URL: neither is a second error.
#[test]
fn a_file_with_a_secret_that_cannot_be_used_is_one_error_with_its_path_and_its_source() {
    let files = ["", "\n , \n", "good\ntop secret\n"].map(|text| file(text).1);
    let [empty, blank, invalid] = files.each_ref().map(|file| file.path().to_str().unwrap());
    let url = (
        "storage.postgres.url",
        &[POSTGRES[0], ("keys.backend", "memory")][..],
    );
    let tokens = ("keys.memory.tokens", &[("http.listen", "0.0.0.0:0")][..]);
    for ((key, others), path, reason) in [
        (tokens, "/nowhere/secret", "cannot be read: No such file"),
        (tokens, "/", "cannot be read: Is a directory"),
        (tokens, empty, "is empty"),
        (tokens, blank, "is empty"),
        (
            tokens,
            invalid,
            "contains an invalid token, number 2: a token has",
        ),
        (url, "/nowhere/secret", "cannot be read: No such file"),
    ] {
        let file_key = format!("{key}_file");
        let found = errors(&keys(&[others, &[(&file_key, path)]].concat()));
        let expected = format!("{key} ({path}, named by {}) {reason}", variable(&file_key));
        assert!(
            matches!(&found[..], [error] if error.starts_with(&expected)),
            "{expected}: {found:?}"
        );
        assert!(!found[0].contains("top secret"), "{found:?}");
    }
    let both = "keys.memory.tokens (ANIMAL_STORE_KEYS__MEMORY__TOKENS) and keys.memory.tokens_file \
                (ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE) must not both be set";
    assert_eq!(
        errors(&keys(&[TOKENS, ("keys.memory.tokens_file", empty)])),
        [both]
    );
    let found = errors(&keys(&[(
        "keys.redis.url_file",
        "redis://:top-secret@localhost",
    )]));
    let expected = "keys.redis.url (ANIMAL_STORE_KEYS__REDIS__URL_FILE names a URL, not a file) cannot be read: No such";
    assert!(
        matches!(&found[..], [error] if error.starts_with(expected) && !error.contains("secret")),
        "{found:?}"
    );
}

#[test]
fn a_secret_is_never_shown() {
    let secrets = [
        (
            "storage.postgres.url",
            "postgres://shop:top-secret@db/animals",
        ),
        (
            "storage.postgres.migrate_url",
            "postgres://shop:top-secret@db/animals",
        ),
        ("keys.redis.url", "redis://:top-secret@cache"),
        (
            "keys.redis.admin_url",
            "redis+sentinel://:top-secret@cache/shop?sentinel_password=top-secret",
        ),
        ("keys.memory.tokens", "top-secret"),
    ];
    for backends in [
        &[][..],
        &[POSTGRES[0], REDIS[0]],
        &[POSTGRES[0], ("keys.backend", "memory")],
    ] {
        let settings = [&secrets[..], backends].concat();
        let (config, lines) = (config(&settings), lines(&settings));
        assert!(!format!("{config:?}").contains("top-secret"), "{config:?}");
        let set = lines
            .iter()
            .filter(|line| line.starts_with('#') && line.contains("\"(set)\""))
            .count();
        assert_eq!(set, secrets.len(), "{lines:#?}");
    }
    for (name, value) in secrets {
        let flags = vec![(name.to_owned(), value.to_owned())];
        let [error] = &errors(&Sources {
            flags,
            ..Sources::default()
        })[..] else {
            panic!("one error: {name}")
        };
        assert!(
            error.starts_with(&format!("{name} (--set) is a secret"))
                && !error.contains("top-secret"),
            "{error}"
        );
    }
}
