mod parts;
mod refused;
mod released;
mod sources;

use std::{env::current_dir, time::Duration};

use animal_store_adapters_http::ApiSettings;
use animal_store_adapters_postgres::PostgresSettings;
use animal_store_adapters_redis::RedisSettings;
use animal_store_http1::ConnectionLimits;
use secrecy::ExposeSecret;

use animal_store_settings::Setting;

use super::*;

fn variable(name: &str) -> String {
    SCHEMA.variable(name)
}

const POSTGRES: [(&str, &str); 2] = [
    ("storage.backend", "postgres"),
    (
        "storage.postgres.url",
        "postgres://shop:top-secret@db/animals",
    ),
];
const REDIS: [(&str, &str); 2] = [
    ("keys.backend", "redis"),
    ("keys.redis.url", "redis://shop:top-secret@cache"),
];
const TOKENS: (&str, &str) = ("keys.memory.tokens", "a");

fn environment(variables: &[(String, &str)]) -> Sources {
    let environment = variables
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Sources {
        environment,
        ..Sources::default()
    }
}

/// The variables of these keys.
fn keys(keys: &[(&str, &str)]) -> Sources {
    environment(
        &keys
            .iter()
            .map(|(name, value)| (variable(name), *value))
            .collect::<Vec<_>>(),
    )
}

fn file(text: &str) -> (Sources, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    (
        Sources {
            file: Some(file.path().to_owned()),
            ..Sources::default()
        },
        file,
    )
}

#[track_caller]
fn config(settings: &[(&str, &str)]) -> Config {
    Config::load(&keys(settings)).unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

/// Asserts that these keys have one error, which is about one of them, with this rule, and without a secret.
#[track_caller]
fn assert_refused(settings: &[(&str, &str)], key: &str, rule: &str) {
    let Err(errors) = Config::load(&keys(settings)) else {
        panic!("{settings:?} is accepted")
    };
    let [error] = errors.lines()[..] else {
        panic!("{settings:?}: {errors:#?}")
    };
    assert!(
        error.starts_with(&format!("{key} ({}) {rule}", variable(key))),
        "{settings:?}: {error}"
    );
    assert!(!error.contains("secret"), "{error}");
}

#[track_caller]
fn lines(settings: &[(&str, &str)]) -> Vec<String> {
    config(settings).lines
}

/// The name and the value of every key.
#[track_caller]
fn values(sources: &Sources) -> Vec<(String, String)> {
    let values = Config::load(sources).unwrap().values;
    values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.expose_secret().to_owned()))
        .collect()
}

fn tokens(config: &Config) -> Vec<&str> {
    let ApiKeysConfig::Memory(MemoryApiKeysConfig { tokens }) = &config.api_keys else {
        panic!("{:?}", config.api_keys)
    };
    tokens.iter().map(ExposeSecret::expose_secret).collect()
}

#[test]
fn the_defaults_are_valid_and_those_of_the_adapters() {
    let config = config(&[]);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(
        config
            .management
            .map(|address| address.to_string())
            .as_deref(),
        Some("127.0.0.1:8081")
    );
    assert!(config.serves_get_pet);
    let connections = ConnectionLimits {
        workers: config.http.connections.workers,
        ..ConnectionLimits::default()
    };
    let expected = ApiSettings {
        connections,
        ..ApiSettings::default()
    };
    assert_eq!(config.http, expected);
    let StorageConfig::Sqlite(sqlite) = config.storage else {
        panic!("{:?}", config.storage)
    };
    assert_eq!(sqlite.path, current_dir().unwrap().join("animal-store.db"));
    assert!(
        matches!(config.api_keys, ApiKeysConfig::Sqlite(_)),
        "{:?}",
        config.api_keys
    );

    let config = self::config(&[&POSTGRES[..], &REDIS].concat());
    let StorageConfig::Postgres(postgres) = config.storage else {
        panic!("{:?}", config.storage)
    };
    assert_eq!(
        format!("{:?}", postgres.settings),
        format!("{:?}", PostgresSettings::default())
    );
    let ApiKeysConfig::Redis(redis) = config.api_keys else {
        panic!("{:?}", config.api_keys)
    };
    assert_eq!(
        format!("{:?}", redis.directory),
        format!("{:?}", RedisSettings::default())
    );
}

/// Except secrets and files, which have tests of their own.
#[test]
#[expect(clippy::too_many_lines, reason = "a table with one value on a line")]
fn every_key_sets_its_field() {
    let rows = [
        ("http.listen", "127.0.0.1:0", "listen: 127.0.0.1:0"),
        ("http.workers", "300", "workers: 300,"),
        ("http.max_connections", "4", "max_connections: 4,"),
        (
            "http.max_in_flight",
            "6",
            "max_in_flight: 6, max_in_flight_per_key: 3,",
        ),
        ("http.max_body_bytes", "1048576", "max_body_bytes: 1048576,"),
        ("http.keep_alive", "1h", "keep_alive: 3600s,"),
        ("http.cors_origins", "*", "origins: Some(Any)"),
        (
            "http.public_url",
            "https://shop.example/v1/",
            r#"public_url: Some(PublicUrl("https://shop.example/v1"))"#,
        ),
        (
            "http.trusted_proxies",
            "10.0.0.0/8, ::1",
            "networks: [10.0.0.0/8, ::1/128]",
        ),
        (
            "http.rate_limit.per_second",
            "6",
            "RateLimit { per_second: 6, burst: 6 }",
        ),
        ("http.rate_limit.burst", "9", "burst: 9 }"),
        (
            "http.auth_failures.per_minute",
            "7",
            "auth_failures: Some(7)",
        ),
        ("http.deprecated_get", "gone", "serves_get_pet: false"),
        ("management.listen", "", "management: None"),
        ("storage.backend", "memory", "storage: Memory"),
        (
            "storage.idempotency_retention",
            "1s",
            "idempotency_retention: 1s",
        ),
        (
            "storage.sqlite.path",
            "/data/pets.db",
            "path: \"/data/pets.db\"",
        ),
        ("storage.postgres.migrate", "check", "schema: Check"),
        (
            "storage.postgres.connections_per_worker",
            "64",
            "connections_per_worker: 64",
        ),
        (
            "storage.postgres.transaction_pooling",
            "true",
            "transaction_pooling: true",
        ),
        (
            "storage.postgres.timeout",
            "1m",
            "connect_timeout: 60s, timeout: 60s",
        ),
        ("keys.backend", "memory", "api_keys: Memory"),
        ("keys.redis.wait_replicas", "16", "wait_replicas: 16"),
        ("keys.redis.prefix", "shop:", "prefix: \"shop:\""),
        ("keys.redis.lease", "1s", "lease: 1s"),
        ("keys.redis.max_known", "8", "max_known: 8"),
        (
            "log.filter",
            "off,actix_http=off",
            "max_level: LevelFilter::OFF",
        ),
        ("log.requests", "errors", "errors_only: true"),
        ("log.format", "json", "json: Some(true)"),
        (
            "traces.endpoint",
            "https://collector.example",
            "traces: Some(Url",
        ),
        ("traces.sample_ratio", "1", "sample_ratio: Some(1.0)"),
        ("shutdown.timeout", "11s", "timeout: 11s"),
        (
            "shutdown.drain_delay",
            "500ms",
            "drain_delay: 500ms, inherited_drain_delay: 500ms",
        ),
    ];
    let keys = SCHEMA
        .settings()
        .filter(|key| !key.is_secret && !key.name.ends_with("_file"));
    assert_eq!(
        rows.map(|(key, ..)| key).to_vec(),
        keys.map(|key| key.name).collect::<Vec<_>>()
    );
    for (key, value, field) in rows {
        let others = match key.rsplit_once('.') {
            Some(("storage.postgres", _)) => [
                &POSTGRES[..],
                &[
                    TOKENS,
                    ("storage.postgres.migrate_url", "postgres://owner@direct/a"),
                ],
            ]
            .concat(),
            Some(("http.rate_limit", "burst")) => vec![("http.rate_limit.per_second", "1")],
            Some(("keys.redis", _)) => REDIS.to_vec(),
            Some(("traces", "sample_ratio")) => vec![("traces.endpoint", "http://127.0.0.1/")],
            _ => Vec::new(),
        };
        let [default, set] = [&[][..], &[(key, value)]]
            .map(|set| format!("{:?}", config(&[&others[..], set].concat())));
        assert!(
            set.contains(field) && !default.contains(field),
            "{key}: {set}"
        );
    }
    let migrate_url = (
        "storage.postgres.migrate_url",
        "postgres://owner@direct:7/b",
    );
    let storage = config(&[POSTGRES[0], POSTGRES[1], TOKENS, migrate_url]).storage;
    let StorageConfig::Postgres(postgres) = storage else {
        panic!("{storage:?}")
    };
    let endpoints =
        [postgres.endpoint, postgres.migrate_endpoint].map(|endpoint| endpoint.to_string());
    assert_eq!(endpoints, ["db:5432/animals", "direct:7/b"]);
    let ApiKeysConfig::Redis(redis) =
        config(&[&REDIS[..], &[("keys.redis.admin_url", "redis://direct")]].concat()).api_keys
    else {
        panic!("not Redis")
    };
    let endpoints = [Some(redis.endpoint), redis.admin_endpoint]
        .map(|endpoint| endpoint.expect("set").to_string());
    assert_eq!(endpoints, ["cache:6379", "direct:6379"]);
}

#[test]
fn the_documentation_has_exactly_one_row_per_key() {
    let documentation = include_str!("../../../../docs/configuration.md");
    let rows: Vec<&str> = documentation
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let expected = SCHEMA.settings().map(
        |Setting {
             name,
             default,
             description,
             ..
         }| {
            let default = if default.is_empty() {
                "none".to_owned()
            } else {
                format!("`{default}`")
            };
            format!("| `{name}` | {default} | {description} |")
        },
    );
    let expected: Vec<String> = expected.collect();
    assert_eq!(
        rows,
        expected,
        "the rows should be:\n{}\n",
        expected.join("\n")
    );
}

#[test]
fn limits_that_are_not_set_are_derived_from_those_that_are() {
    let limits = |settings: &[_]| config(settings).http;
    for (all, per_key) in [("800", 400), ("3", 1), ("1", 1)] {
        assert_eq!(
            limits(&[("http.max_in_flight", all)]).max_in_flight_per_key,
            per_key,
            "{all}"
        );
    }
    for (settings, connections) in [(&[POSTGRES[0], POSTGRES[1], TOKENS][..], 8), (&[], 0)] {
        assert_eq!(
            config(settings).storage.backend().connections(4),
            connections,
            "only PostgreSQL has some for each worker"
        );
    }
    let ConnectionLimits {
        keep_alive,
        head_timeout,
        body_timeout,
        answer_timeout,
        ..
    } = limits(&[("http.keep_alive", "1h")]).connections;
    assert!(answer_timeout > keep_alive + head_timeout + body_timeout);
    for (timeout, delay, drain_delay) in [
        ("30s", "", 5000),
        ("10s", "", 5000),
        ("9s", "", 4500),
        ("1s", "", 500),
        ("30s", "0s", 0),
    ] {
        let shutdown = config(&[
            ("shutdown.timeout", timeout),
            ("shutdown.drain_delay", delay),
        ])
        .shutdown;
        assert_eq!(
            shutdown.drain_delay,
            Duration::from_millis(drain_delay),
            "{timeout} {delay}"
        );
        assert_eq!(shutdown.inherited_drain_delay, Duration::ZERO);
    }
    for (timeout, milliseconds) in [("30s", 29_500), ("2s", 1500), ("1s", 750), ("1ms", 0)] {
        let shutdown = config(&[("shutdown.timeout", timeout)]).shutdown;
        assert_eq!(
            shutdown.requests_timeout.as_millis(),
            milliseconds,
            "{timeout}"
        );
    }
}
