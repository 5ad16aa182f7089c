mod cors;
mod listeners;
mod memory_keys;
mod postgres;
mod proxies;
mod rate_limits;
mod redis;
mod secret_files;
mod shutdown;
mod sources;
mod sqlite;
mod tls;
mod traces;
mod unselected;

use std::time::Duration;

use secrecy::ExposeSecret;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Sources {
    let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Sources { environment, ..Sources::default() }
}

fn file(text: &str) -> (Sources, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    (Sources { file: Some(file.path().to_owned()), ..Sources::default() }, file)
}

fn errors(sources: &Sources) -> Vec<String> {
    Config::load(sources).unwrap_err().0
}

/// Returns the value that `check-config` prints.
fn shown(sources: &Sources, name: &str) -> String {
    let config = Config::load(sources).unwrap();
    config.shown.into_iter().find(|(key, _)| key.name == name).unwrap().1
}

fn tokens(config: &Config) -> Vec<&str> {
    let KeysConfig::Memory { tokens } = &config.keys else { panic!("keys in memory") };
    tokens.iter().map(ExposeSecret::expose_secret).collect()
}

#[test]
fn the_defaults_are_a_valid_configuration() {
    let config = Config::load(&Sources::default()).unwrap();

    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.management_listen.map(|address| address.to_string()).as_deref(), Some("127.0.0.1:8081"));
    assert_eq!(config.http.limits.max_body_bytes, 16 * 1024);
    let StorageConfig::Sqlite(sqlite) = config.storage else { panic!("{:?}", config.storage) };
    assert_eq!(sqlite.settings.idempotency_retention, Duration::from_hours(24));
    assert!(matches!(config.keys, KeysConfig::Sqlite(_)), "{:?}", config.keys);
}

#[test]
fn the_documentation_has_exactly_one_row_per_key() {
    let documentation = include_str!("../../../../docs/configuration.md");
    let rows: Vec<&str> = documentation.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = Config::all_keys()
        .iter()
        .map(|key| {
            let default = if key.default.is_empty() { "none".to_owned() } else { format!("`{}`", key.default) };
            format!("| `{}` | {default} | `{}` | {} |", key.name, key.variable(), key.description)
        })
        .collect();
    assert_eq!(rows, expected, "the rows should be:\n{}\n", expected.join("\n"));
}

#[test]
fn every_error_is_listed() {
    let sources = environment(&[
        ("ANIMAL_STORE_HTTP__LISTEN", "here"),
        ("ANIMAL_STORE_HTTP__WORKERS", "0"),
        ("ANIMAL_STORE_HTTP__KEEP_ALIVE", "5"),
        ("ANIMAL_STORE_STORAGE__BACKEND", "disk"),
        ("ANIMAL_STORE_KEYS__BACKEND", "file"),
        ("ANIMAL_STORE_LOG__FILTER", "inf"),
        ("ANIMAL_STORE_LOG__FORMAT", "xml"),
        ("ANIMAL_STORE_HTTP__LISTN", "127.0.0.1:1"),
        ("ANIMAL_STORE_HTTP", "127.0.0.1:1"),
        ("OTHER_HTTP__LISTEN", "not ours"),
    ]);
    assert_eq!(
        errors(&sources),
        [
            "http (ANIMAL_STORE_HTTP) is unknown",
            "http.listn (ANIMAL_STORE_HTTP__LISTN) is unknown: did you mean ANIMAL_STORE_HTTP__LISTEN?",
            "http.listen (ANIMAL_STORE_HTTP__LISTEN) must be an IP address and a port, such as 127.0.0.1:8080 or \
             [::]:8080, not \"here\"",
            "http.workers (ANIMAL_STORE_HTTP__WORKERS) must be auto or a whole number from 1 to 512, not \"0\"",
            "http.keep_alive (ANIMAL_STORE_HTTP__KEEP_ALIVE) must be a duration from 1ms to 1h, such as 5s, not \"5\"",
            "storage.backend (ANIMAL_STORE_STORAGE__BACKEND) must be sqlite or memory or postgres, not \"disk\"",
            "keys.backend (ANIMAL_STORE_KEYS__BACKEND) must be sqlite or memory or redis, not \"file\"",
            "log.filter (ANIMAL_STORE_LOG__FILTER) must be a level, and after commas levels of modules, such as info \
             or info,actix_http=error, not \"inf\"",
            "log.format (ANIMAL_STORE_LOG__FORMAT) must be auto or text or json, not \"xml\"",
        ]
    );
}

#[test]
fn the_errors_have_a_line_each_or_one_line_for_the_log() {
    let sources = environment(&[("ANIMAL_STORE_HTTP__WORKERS", "0"), ("ANIMAL_STORE_LOG__FORMAT", "xml")]);
    let error = Config::load(&sources).unwrap_err();
    assert_eq!(error.one_line(), error.0.join("; "));
    let lines: Vec<String> = error.to_string().lines().skip(1).map(|line| line.trim_start().to_owned()).collect();
    assert_eq!((lines.len(), lines), (2, error.0));
}

#[test]
fn a_number_of_bytes_has_bounds() {
    for (key, values, rule) in [
        ("MAX_UNSENT_BYTES", ["1048575", "1048576"], "must be a whole number from 1048576 to "),
        ("MAX_BODY_BYTES", ["1048577", "1048576"], "must be a whole number from 64 to 1048576,"),
        ("MAX_BODY_BYTES", ["63", "64"], "must be a whole number from 64 to 1048576,"),
    ] {
        let variable = format!("ANIMAL_STORE_HTTP__{key}");
        let [refused, accepted] = values.map(|value| environment(&[(&variable, value)]));
        let [error] = &errors(&refused)[..] else { panic!("{values:?}") };
        assert!(error.contains(rule), "{error}");
        assert!(Config::load(&accepted).is_ok(), "{values:?}");
    }
}

#[test]
fn invalid_toml_is_reported_by_its_line_without_its_text() {
    let (sources, _file) = file("[keys.memory]\n\ntokens = ['top-secret\n");
    let [error] = &errors(&sources)[..] else { panic!("one error") };
    assert!(error.ends_with(", line 3: not valid TOML"), "{error}");
}

#[test]
fn an_invalid_backend_is_one_error() {
    // Keys in memory, which pets in memory imply, would require tokens.
    let found = errors(&environment(&[
        ("ANIMAL_STORE_STORAGE__BACKEND", "memory"),
        ("ANIMAL_STORE_KEYS__BACKEND", "rediss"),
        ("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0"),
    ]));
    let expected = "keys.backend (ANIMAL_STORE_KEYS__BACKEND) must be sqlite or memory or redis, not \"rediss\"";
    assert_eq!(found, [expected]);
}

#[test]
fn the_answer_timeout_is_longer_than_the_others_together() {
    let sources = environment(&[("ANIMAL_STORE_HTTP__ANSWER_TIMEOUT", "90s")]);
    assert!(errors(&sources)[0].starts_with("http.answer_timeout (ANIMAL_STORE_HTTP__ANSWER_TIMEOUT) must be longer"));
}

#[test]
fn a_log_filter_has_no_empty_part() {
    for filter in ["", " ", "info,", ",info", "info,,actix_http=off", "info,actix_http=", "info,=off"] {
        let [error] = &errors(&environment(&[("ANIMAL_STORE_LOG__FILTER", filter)]))[..] else { panic!("{filter:?}") };
        assert!(error.starts_with("log.filter (ANIMAL_STORE_LOG__FILTER) must be a level, and"), "{error}");
    }
    assert!(Config::load(&environment(&[("ANIMAL_STORE_LOG__FILTER", "off,actix_http=off")])).is_ok());
}

#[test]
fn a_shown_configuration_contains_no_secret() {
    let sources = environment(&[("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "top-secret")]);

    assert_eq!(shown(&sources, "keys.memory.tokens"), "(set)");
    assert!(!format!("{:?}", Config::load(&sources).unwrap()).contains("top-secret"));
}

#[test]
fn a_retention_is_refused_unless_every_storage_can_count_it() {
    for value in ["", "0s", "999ms", "1", "soon", "-1s", "30d 1ms", "1y"] {
        let rule = "must be a duration from 1s to 30days, such as 5s, not";
        let expected =
            format!("storage.idempotency_retention (ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION) {rule} {value:?}");
        for backend in ["sqlite", "memory", "postgres"] {
            let found = errors(&environment(&[
                ("ANIMAL_STORE_STORAGE__BACKEND", backend),
                ("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a"),
                ("ANIMAL_STORE_STORAGE__POSTGRES__URL", "postgres://db/animals"),
                ("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", value),
            ]));
            assert_eq!(found, [expected.as_str()], "{backend}");
        }
    }
}

#[test]
fn toml_values_of_every_scalar_type_are_texts() {
    for value in ["3", "'3'", "0x3"] {
        let (sources, _file) = file(&format!("http = {{ workers = {value} }}\n"));
        assert_eq!(shown(&sources, "http.workers"), "3", "{value}");
    }
    let (sources, _file) = file("[keys.memory]\ntokens = [2026-01-01, 7, 2.5, true]\n");
    assert_eq!(tokens(&Config::load(&sources).unwrap()), ["2026-01-01", "7", "2.5", "true"]);
}

#[test]
fn by_default_one_key_can_have_half_of_the_requests_in_flight() {
    let (all, per_key) = ("ANIMAL_STORE_HTTP__MAX_IN_FLIGHT", "ANIMAL_STORE_HTTP__MAX_IN_FLIGHT_PER_KEY");
    for (variables, expected) in [
        (&[][..], 1000),
        (&[(all, "800")], 400),
        (&[(all, "3"), (per_key, "")], 1),
        (&[(all, "1")], 1),
        (&[(all, "800"), (per_key, "800")], 800),
    ] {
        let config = Config::load(&environment(variables)).unwrap();
        assert_eq!(config.http.limits.max_in_flight_per_key, expected, "{variables:?}");
    }
    let error = "http.max_in_flight_per_key (ANIMAL_STORE_HTTP__MAX_IN_FLIGHT_PER_KEY) must be a whole number from 1 \
                 to 1000000, not \"0\"";
    assert_eq!(errors(&environment(&[(per_key, "0")])), [error]);
}
