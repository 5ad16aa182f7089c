//! The source that an error names, and errors of the sources themselves.

use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use super::*;

const RULE: &str = "must be auto or a whole number from 1 to 512, not \"0\"";

#[test]
fn an_error_names_the_line_of_the_file() {
    let (sources, toml) = file("# comment\n[http]\n\nworkers = 0\n\n[log]\nformat = [\n  'text',\n]\n");
    let name = toml.path().display();
    assert_eq!(
        errors(&sources),
        [format!("http.workers ({name}, line 4) {RULE}"), format!("log.format ({name}, line 7) must be one value")]
    );
}

#[test]
fn an_error_names_the_source_that_wins() {
    let (mut sources, toml) = file("http.workers = 0\n");
    assert_eq!(errors(&sources), [format!("http.workers ({}, line 1) {RULE}", toml.path().display())]);

    sources.environment.push(("ANIMAL_STORE_HTTP__workers".into(), "0".into()));
    assert_eq!(errors(&sources), [format!("http.workers (ANIMAL_STORE_HTTP__workers) {RULE}")]);

    sources.flags.push(("http.workers".into(), "0".into()));
    assert_eq!(errors(&sources), [format!("http.workers (--set) {RULE}")]);

    let listen = Sources { listen: Some("here".to_owned()), ..Sources::default() };
    assert!(errors(&listen)[0].starts_with("http.listen (--listen) must be an IP address"));
}

#[test]
fn invalid_toml_is_reported_by_its_line_without_its_text() {
    let (sources, _file) = file("[keys.memory]\n\ntokens = ['top-secret\n");
    let [error] = &errors(&sources)[..] else { panic!("one error") };
    assert!(error.ends_with(", line 3: not valid TOML"), "{error}");
}

#[test]
fn a_list_contains_no_list() {
    let (nested, file) = file("[http]\ncors_origins = [['https://a.example']]\n");
    let label = format!("http.cors_origins ({}, line 2)", file.path().display());
    assert_eq!(errors(&nested), [format!("{label} must be a list of texts")]);
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_key() {
    let (mut sources, toml) = file("colour = 'red'\n[http]\nlisen = ''\n[keys.memory]\ntoken_file = ''\n");
    let unlike = ["HTTP_LISTEN", "PORT", "STORAGE__POSTGRES__POOL_SIZE"];
    sources.environment = unlike.map(|name| (format!("ANIMAL_STORE_{name}").into(), "".into())).to_vec();
    sources.flags =
        ["HTTP.Workers", "log.level", "log.fomat", "x.format"].map(|name| (name.to_owned(), "1".to_owned())).to_vec();
    let name = toml.path().display();
    assert_eq!(
        errors(&sources),
        [
            "HTTP.Workers (--set) is unknown: did you mean http.workers?".to_owned(),
            format!("colour ({name}, line 1) is unknown"),
            format!("http.lisen ({name}, line 3) is unknown: did you mean http.listen?"),
            "http_listen (ANIMAL_STORE_HTTP_LISTEN) is unknown: did you mean ANIMAL_STORE_HTTP__LISTEN?".to_owned(),
            format!("keys.memory.token_file ({name}, line 5) is unknown: did you mean keys.memory.tokens_file?"),
            "log.fomat (--set) is unknown: did you mean log.format?".to_owned(),
            "log.level (--set) is unknown".to_owned(),
            "port (ANIMAL_STORE_PORT) is unknown".to_owned(),
            "storage.postgres.pool_size (ANIMAL_STORE_STORAGE__POSTGRES__POOL_SIZE) is unknown".to_owned(),
            "x.format (--set) is unknown".to_owned(),
        ]
    );
}

#[test]
fn two_variables_of_one_key_are_an_error_that_names_both() {
    let [upper, lower] = ["ANIMAL_STORE_HTTP__WORKERS", "ANIMAL_STORE_HTTP__workers"];
    for variables in [[upper, lower], [lower, upper]] {
        let sources = environment(&variables.map(|name| (name, "1")));
        let expected = format!("http.workers ({upper} and {lower}) must be set by one variable, not by two");
        assert_eq!(errors(&sources), [expected]);
    }
}

#[test]
fn without_the_file_no_value_is_reported_as_missing() {
    let mut sources = environment(&[
        ("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0"),
        ("ANIMAL_STORE_STORAGE__BACKEND", "postgres"),
        ("ANIMAL_STORE_HTTP__WORKERS", "0"),
    ]);
    sources.file = Some("/nowhere/store.toml".into());
    let found = errors(&sources);
    let [file, workers] = &found[..] else { panic!("two errors: {found:?}") };
    assert!(file.starts_with("/nowhere/store.toml: cannot be read: No such file"), "{file}");
    assert!(workers.starts_with("http.workers ("), "{workers}");
}

#[test]
fn a_file_with_secrets_that_others_can_write_is_a_warning() {
    let (_, secret) = file("top-secret");
    let path = secret.path().display();
    for (text, mode, warned) in [
        ("keys.memory.tokens = 'top-secret'", 0o666, true),
        ("keys.memory.tokens = 'top-secret'", 0o660, true),
        ("keys.memory.tokens = 'top-secret'", 0o602, true),
        ("keys.memory.tokens = 'top-secret'", 0o644, false),
        (&format!("keys.memory.tokens_file = '{path}'"), 0o666, false),
        ("http.workers = 1", 0o666, false),
    ] {
        let (sources, toml) = file(text);
        std::fs::set_permissions(toml.path(), Permissions::from_mode(mode)).unwrap();
        let warnings = Config::load(&sources).unwrap().warnings;
        assert_eq!(warnings.len(), usize::from(warned), "{text} {mode:o}: {warnings:?}");
        if warned {
            let expected = format!("{} contains secrets, and other users can write to it", toml.path().display());
            assert!(warnings[0].starts_with(&expected) && !warnings[0].contains("top-secret"), "{warnings:?}");
        }
    }
}
