mod parts;
mod refused;
mod released;

use std::{env::current_dir, fs, time::Duration};

use animal_store_adapters_http::ApiSettings;
use animal_store_adapters_postgres::PostgresSettings;
use animal_store_adapters_redis::RedisSettings;
use animal_store_http1::ConnectionLimits;
use tempfile::NamedTempFile;

use super::*;

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

/// The variables of these settings.
fn keys(settings: &[(&str, &str)]) -> Sources {
    let variable = |(name, value): &(&str, &str)| (SCHEMA.variable(name).into(), value.into());
    Sources {
        environment: settings.iter().map(variable).collect(),
        ..Sources::default()
    }
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

fn in_file(file: &NamedTempFile) -> Sources {
    Sources {
        file: Some(file.path().to_owned()),
        ..Sources::default()
    }
}

#[track_caller]
fn config(settings: &[(&str, &str)]) -> Config {
    Config::load(&keys(settings)).unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

/// The configuration as Rust shows it.
#[track_caller]
fn shown(settings: &[(&str, &str)]) -> String {
    format!("{:?}", config(settings))
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
    let expected = format!("{key} ({}) {rule}", SCHEMA.variable(key));
    assert!(error.starts_with(&expected), "{settings:?}: {error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn the_defaults_are_valid_and_those_of_the_adapters() {
    let config = config(&[]);
    let addresses = [Some(config.listen), config.management];
    let expected = ["127.0.0.1:8080", "127.0.0.1:8081"];
    assert_eq!(addresses, expected.map(|address| address.parse().ok()));
    let connections = ConnectionLimits {
        workers: config.http.connections.workers,
        ..ConnectionLimits::default()
    };
    let expected = ApiSettings {
        connections,
        ..ApiSettings::default()
    };
    assert_eq!(config.http, expected);
    let path = current_dir().unwrap().join("animal-store.db");
    let sqlite = format!("{:?} {:?}", config.stores.pets, config.stores.api_keys);
    assert_eq!(sqlite.matches(&format!("path: {path:?}")).count(), 2);

    let servers = shown(&[POSTGRES, REDIS].concat());
    for adapter in [
        format!("{:?}", PostgresSettings::default()),
        format!("{:?}", RedisSettings::default()),
    ] {
        assert!(servers.contains(&adapter), "{adapter}: {servers}");
    }
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
        ("storage.backend", "memory", "pets: Memory"),
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
        ("log.format", "json", "format: Json"),
        (
            "traces.endpoint",
            "https://collector.example",
            "collector.example",
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
    let direct = [
        (
            "storage.postgres.migrate_url",
            "postgres://a:top-secret@direct:7/b",
        ),
        ("keys.redis.admin_url", "redis://:top-secret@direct"),
        ("keys.memory.tokens", "top-secret"),
    ];
    let needed = [
        ("http.rate_limit.per_second", "1"),
        ("traces.endpoint", "http://127.0.0.1/"),
    ];
    for (key, value, field) in rows {
        // Settings without an effect on their own need others.
        let others = if key == "storage.sqlite.path" {
            Vec::new()
        } else {
            [&POSTGRES[..], &REDIS, &direct, &needed].concat()
        };
        let default = shown(&others);
        let set = shown(&[&others[..], &[(key, value)]].concat());
        assert!(
            set.contains(field) && !default.contains(field),
            "{key}: {set}"
        );
    }
    let endpoints = shown(&[&POSTGRES[..], &REDIS, &direct].concat());
    for field in [
        " endpoint: PgEndpoint(db:5432/animals)",
        "migrate_endpoint: PgEndpoint(direct:7/b)",
        " endpoint: RedisEndpoint(cache:6379)",
        "admin_endpoint: Some(RedisEndpoint(direct:6379))",
    ] {
        assert!(endpoints.contains(field), "{field}: {endpoints}");
    }
    let in_memory = shown(&[&POSTGRES[..], &direct].concat());
    let all = endpoints + &in_memory;
    assert!(!all.contains("top-secret"), "{all}");
}

#[test]
fn the_documentation_has_exactly_one_row_per_key() {
    let documentation = include_str!("../../../../docs/configuration.md");
    let rows: Vec<_> = documentation
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let expected = SCHEMA.settings().map(|setting| {
        let default = match setting.default {
            "" => "none".to_owned(),
            default => format!("`{default}`"),
        };
        format!(
            "| `{}` | {default} | {} |",
            setting.name, setting.description
        )
    });
    let expected: Vec<_> = expected.collect();
    let lines = expected.join("\n");
    assert_eq!(rows, expected, "the rows should be:\n{lines}\n");
}

#[test]
fn limits_that_are_not_set_are_derived_from_those_that_are() {
    for (all, per_key) in [("800", 400), ("3", 1), ("1", 1)] {
        let limits = config(&[("http.max_in_flight", all)]).http;
        assert_eq!(limits.max_in_flight_per_key, per_key, "{all}");
    }
    let connections = |settings: &[_]| config(settings).stores.pets.backend().connections(4);
    assert_eq!(connections(&[&POSTGRES[..], &[TOKENS]].concat()), 8);
    assert_eq!(connections(&[]), 0, "only PostgreSQL has some");
    // The delay after SIGTERM, and the time for requests.
    for (timeout, delay, drain_delay, requests_timeout) in [
        ("30s", "", 5000, 29_500),
        ("10s", "", 5000, 9500),
        ("9s", "", 4500, 8500),
        ("2s", "", 1000, 1500),
        ("1s", "", 500, 750),
        ("2ms", "", 1, 1),
        ("30s", "0s", 0, 29_500),
    ] {
        let timeouts = [
            ("shutdown.timeout", timeout),
            ("shutdown.drain_delay", delay),
        ];
        let shutdown = config(&timeouts).shutdown;
        let milliseconds =
            [shutdown.drain_delay, shutdown.requests_timeout].map(|duration| duration.as_millis());
        assert_eq!(milliseconds, [drain_delay, requests_timeout], "{timeout}");
        assert_eq!(shutdown.inherited_drain_delay, Duration::ZERO);
    }
}
