mod certificates;
mod parts;
mod refused;
mod secrets;
mod sources;

use std::{env::current_dir, path::Path, time::Duration};

use animal_store_adapters_http::{AllowedOrigins, Limits, TrustedProxies};
use animal_store_adapters_postgres::{PostgresSettings, SchemaMode};
use animal_store_adapters_redis::RedisSettings;
use secrecy::ExposeSecret;

use super::*;

const POSTGRES: [(&str, &str); 2] =
    [("storage.backend", "postgres"), ("storage.postgres.url", "postgres://shop:top-secret@db/animals")];
const REDIS: [(&str, &str); 2] = [("keys.backend", "redis"), ("keys.redis.url", "redis://shop:top-secret@cache")];
const TOKENS: (&str, &str) = ("keys.memory.tokens", "a");

fn environment(variables: &[(&str, &str)]) -> Sources {
    let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Sources { environment, ..Sources::default() }
}

/// The variables of these keys.
fn keys(keys: &[(&str, &str)]) -> Sources {
    let environment = keys.iter().map(|(name, value)| (variable(name).into(), value.into())).collect();
    Sources { environment, ..Sources::default() }
}

fn file(text: &str) -> (Sources, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    (Sources { file: Some(file.path().to_owned()), ..Sources::default() }, file)
}

#[track_caller]
fn config(settings: &[(&str, &str)]) -> Config {
    Config::load(&keys(settings)).unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

#[track_caller]
fn errors(sources: &Sources) -> Vec<String> {
    Config::load(sources).unwrap_err().0
}

/// Asserts that these keys have one error, which is about one of them, with this rule, and without a secret.
#[track_caller]
fn assert_refused(settings: &[(&str, &str)], key: &str, rule: &str) {
    let Err(ConfigError(found)) = Config::load(&keys(settings)) else { panic!("{settings:?} is accepted") };
    let [error] = &found[..] else { panic!("{settings:?}: {found:#?}") };
    assert!(error.starts_with(&format!("{key} ({}) {rule}", variable(key))), "{settings:?}: {error}");
    assert!(!error.contains("secret"), "{error}");
}

/// Returns the line that `check-config` prints about a key.
#[track_caller]
fn line(sources: &Sources, name: &str) -> String {
    let lines = Config::load(sources).unwrap().lines;
    lines.into_iter().find(|line| line.trim_start_matches('#').starts_with(&format!("{name} = "))).unwrap()
}

/// The name and the value of every key.
#[track_caller]
fn values(sources: &Sources) -> Vec<(String, String)> {
    let values = Config::load(sources).unwrap().values;
    values.iter().map(|(name, value)| ((*name).to_owned(), value.expose_secret().to_owned())).collect()
}

fn tokens(config: &Config) -> Vec<&str> {
    let KeysConfig::Memory { tokens } = &config.keys else { panic!("{:?}", config.keys) };
    tokens.iter().map(ExposeSecret::expose_secret).collect()
}

#[test]
fn the_defaults_are_a_valid_configuration() {
    let config = config(&[]);
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.management_listen.map(|address| address.to_string()).as_deref(), Some("127.0.0.1:8081"));
    assert_eq!((config.http.cors_origins, config.http.serves_get_pet), (AllowedOrigins::These(Vec::new()), true));
    assert_eq!(config.http.trusted_proxies, TrustedProxies::default());
    assert_eq!(config.traces.sampled(), None);
    let StorageConfig::Sqlite(sqlite) = config.storage else { panic!("{:?}", config.storage) };
    assert_eq!(sqlite.path, current_dir().unwrap().join("animal-store.db"));
    assert!(matches!(config.keys, KeysConfig::Sqlite(_)), "{:?}", config.keys);
}

#[test]
fn the_defaults_of_keys_are_those_of_the_adapters() {
    let config = config(&[&POSTGRES[..], &REDIS].concat());
    let expected = Limits { workers: config.http.limits.workers, ..Limits::default() };
    assert_eq!(format!("{:?}", config.http.limits), format!("{expected:?}"));
    let StorageConfig::Postgres(postgres) = config.storage else { panic!("{:?}", config.storage) };
    assert_eq!(format!("{:?}", postgres.settings), format!("{:?}", PostgresSettings::default()));
    let KeysConfig::Redis(redis) = config.keys else { panic!("{:?}", config.keys) };
    assert_eq!(format!("{:?}", redis.directory), format!("{:?}", RedisSettings::default()));
}

#[test]
fn every_key_can_be_set() {
    let config = config(&[
        POSTGRES[0],
        POSTGRES[1],
        REDIS[0],
        REDIS[1],
        ("http.listen", "127.0.0.1:0"),
        ("http.workers", "3"),
        ("http.max_connections", "4"),
        ("http.max_in_flight", "5"),
        ("http.max_body_bytes", "1048576"),
        ("http.keep_alive", "1h"),
        ("http.cors_origins", "*"),
        ("http.trusted_proxies", "10.0.0.0/8, ::1"),
        ("http.rate_limit.per_second", "6"),
        ("http.auth_failures.per_minute", "7"),
        ("http.deprecated_get", "gone"),
        ("management.listen", ""),
        ("storage.idempotency_retention", "1s"),
        ("storage.sqlite.path", "/data/pets.db"),
        ("storage.postgres.migrate_url", "postgres://owner@direct:7/animals"),
        ("storage.postgres.migrate", "check"),
        ("storage.postgres.connections_per_worker", "64"),
        ("storage.postgres.transaction_pooling", "true"),
        ("storage.postgres.timeout", "1m"),
        ("keys.redis.prefix", "shop:"),
        ("keys.redis.lease", "1s"),
        ("keys.redis.max_known", "8"),
        ("log.filter", "off,actix_http=off"),
        ("log.requests", "errors"),
        ("log.format", "json"),
        ("traces.endpoint", "https://collector.example"),
        ("traces.sample_ratio", "1"),
        ("shutdown.timeout", "1s"),
        ("shutdown.drain_delay", "500ms"),
    ]);
    let Limits { workers, max_connections, max_in_flight, max_in_flight_per_key, .. } = config.http.limits;
    assert_eq!((workers, max_connections, max_in_flight, max_in_flight_per_key), (3, 4, 5, 2));
    let Limits { max_body_bytes, keep_alive, answer_timeout, rate_limit, .. } = config.http.limits;
    assert_eq!((max_body_bytes, keep_alive), (1024 * 1024, Duration::from_hours(1)));
    assert!(answer_timeout > keep_alive + Limits::default().head_timeout + Limits::default().body_timeout);
    assert_eq!(rate_limit.map(|rate| (rate.per_second.get(), rate.burst.get())), Some((6, 6)));
    assert_eq!(config.http.limits.max_auth_failures_per_minute.map(u32::from), Some(7));
    assert_eq!((config.http.cors_origins, config.http.serves_get_pet), (AllowedOrigins::Any, false));
    let proxies = ["10.0.0.0/8".to_owned(), "::1".to_owned()];
    assert_eq!(config.http.trusted_proxies, TrustedProxies::parse(&proxies).unwrap());
    assert_eq!(config.management_listen, None);
    let StorageConfig::Postgres(postgres) = config.storage else { panic!("{:?}", config.storage) };
    let PostgresConfig { endpoint, migrate_endpoint, settings } = *postgres;
    assert_eq!(
        (endpoint.to_string(), migrate_endpoint.to_string()),
        ("db:5432/animals".into(), "direct:7/animals".into())
    );
    assert_eq!((settings.schema, settings.connections_per_worker), (SchemaMode::Check, 64));
    assert_eq!((settings.timeout, settings.connect_timeout), (Duration::from_mins(1), Duration::from_mins(1)));
    assert!(settings.transaction_pooling && settings.idempotency_retention == Duration::from_secs(1));
    let KeysConfig::Redis(redis) = config.keys else { panic!("{:?}", config.keys) };
    let RedisSettings { prefix, lease, max_known, .. } = redis.directory;
    assert_eq!((prefix.as_str(), lease, max_known), ("shop:", Duration::from_secs(1), 8));
    assert_eq!((config.log.filter.to_string(), config.log.format), ("actix_http=off,off".to_owned(), LogFormat::Json));
    assert_eq!(config.traces.sampled(), Some(1.0));
    assert_eq!(config.shutdown.drain_delay(true), Duration::from_millis(500));
    let sqlite = self::config(&[("storage.sqlite.path", "/data/pets.db")]).storage;
    let StorageConfig::Sqlite(sqlite) = sqlite else { panic!("{sqlite:?}") };
    assert_eq!(sqlite.path, Path::new("/data/pets.db"));
}

#[test]
fn the_documentation_has_exactly_one_row_per_key() {
    let documentation = include_str!("../../../../docs/configuration.md");
    let rows: Vec<&str> = documentation.lines().filter(|line| line.starts_with("| `")).collect();
    let expected = Config::all_keys().into_iter().map(|Key { name, default, description, .. }| {
        let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
        format!("| `{name}` | {default} | {description} |")
    });
    let expected: Vec<String> = expected.collect();
    assert_eq!(rows, expected, "the rows should be:\n{}\n", expected.join("\n"));
}

#[test]
fn what_check_config_prints_is_the_same_configuration_and_names_each_source() {
    let secret = file("postgres://db/animals\n").1;
    let path = secret.path().to_str().unwrap();
    let (mut sources, toml) = file("[http]\ncors_origins = ['https://a.example', 'https://b.example']\nworkers = 3\n");
    sources.environment = keys(&[
        ("log.filter", "info,a\"\\b\u{7f}=off"),
        ("storage.postgres.url_file", path),
        TOKENS,
        ("traces.sample_ratio", "0.5"),
    ])
    .environment;
    sources.listen = Some("127.0.0.1:0".to_owned());
    let config = Config::load(&sources).unwrap();
    for expected in [
        "http.listen = \"127.0.0.1:0\" # --listen".to_owned(),
        format!("http.workers = 3 # {}, line 3", toml.path().display()),
        format!("http.cors_origins = \"https://a.example,https://b.example\" # {}, line 2", toml.path().display()),
        "http.keep_alive = \"75s\" # default".to_owned(),
        format!("storage.postgres.url_file = {path:?} # ANIMAL_STORE_STORAGE__POSTGRES__URL_FILE"),
        "storage.postgres.migrate_url = \"\" # default".to_owned(),
        "keys.backend = \"memory\" # keys.memory.tokens".to_owned(),
        "#keys.memory.tokens = \"(set)\" # ANIMAL_STORE_KEYS__MEMORY__TOKENS".to_owned(),
        "traces.sample_ratio = 0.5 # ANIMAL_STORE_TRACES__SAMPLE_RATIO".to_owned(),
    ] {
        assert!(config.lines.contains(&expected), "{expected}: {:#?}", config.lines);
    }
    let (printed, _file) = file(&config.lines.join("\n"));
    let [printed, original] = [&printed, &sources].map(values);
    let differing: Vec<_> = printed.iter().zip(&original).filter(|(a, b)| a != b).map(|(_, key)| key).collect();
    assert_eq!(differing, [&("keys.memory.tokens".to_owned(), "a".to_owned())]);
}

#[test]
fn the_configuration_file_that_config_init_prints_has_every_key_and_its_default() {
    let set = [("storage.sqlite.path".to_owned(), "/data/a.db".to_owned())];
    let text = template(&set).unwrap();
    assert!(text.contains("\nstorage.sqlite.path = \"/data/a.db\"\n"), "{text}");
    let uncommented = text.lines().map(|line| match line.strip_prefix('#') {
        Some(key) if !key.starts_with(' ') => key,
        _ => line,
    });
    let uncommented = uncommented.collect::<Vec<_>>().join("\n");
    assert_eq!(values(&file(&uncommented).0), values(&file(&text).0));
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    for name in ["http.lisen", "keys.memory.tokens"] {
        let refused = template(&[(name.to_owned(), "top-secret".to_owned())]).unwrap_err();
        assert!(refused.starts_with(name) && !refused.contains("top-secret"), "{refused}");
    }
}

#[test]
fn toml_values_of_every_scalar_type_are_texts() {
    for value in ["3", "'3'", "0x3"] {
        let (sources, _file) = file(&format!("http = {{ workers = {value} }}\n"));
        assert_eq!(Config::load(&sources).unwrap().http.limits.workers, 3, "{value}");
    }
    let (sources, _file) = file("[keys.memory]\ntokens = [2026-01-01, 7, 2.5, true]\n");
    assert_eq!(tokens(&Config::load(&sources).unwrap()), ["2026-01-01", "7", "2.5", "true"]);
}

#[test]
fn a_list_is_an_array_or_a_text_with_commas() {
    let expected = ["https://a.example", "https://b.example:8443"].map(|origin| origin.parse().unwrap()).to_vec();
    let (array, _file) = file("[http]\ncors_origins = ['https://a.example', '', 'https://b.example:8443']\n");
    let text = keys(&[("http.cors_origins", "https://a.example, https://b.example:8443 ,,")]);
    for sources in [array, text] {
        assert_eq!(Config::load(&sources).unwrap().http.cors_origins, AllowedOrigins::These(expected.clone()));
    }
}

#[test]
fn limits_that_are_not_set_are_derived_from_those_that_are() {
    let limits = |settings: &[_]| config(settings).http.limits;
    for (all, per_key) in [("800", 400), ("3", 1), ("1", 1)] {
        assert_eq!(limits(&[("http.max_in_flight", all)]).max_in_flight_per_key, per_key, "{all}");
    }
    let rate = [("http.rate_limit.per_second", "1000000"), ("http.rate_limit.burst", "1")];
    assert_eq!(limits(&rate).rate_limit.map(|rate| (rate.per_second.get(), rate.burst.get())), Some((1_000_000, 1)));
    for (settings, milliseconds) in [
        (&[][..], 5000),
        (&[("shutdown.timeout", "10s")], 5000),
        (&[("shutdown.timeout", "9s")], 4500),
        (&[("shutdown.timeout", "1s"), ("shutdown.drain_delay", "")], 500),
        (&[("shutdown.drain_delay", "0s")], 0),
    ] {
        let delay = config(settings).shutdown.drain_delay(false);
        assert_eq!(delay, Duration::from_millis(milliseconds), "{settings:?}");
    }
    for (timeout, milliseconds) in [("30s", 29_500), ("2s", 1500), ("1s", 750), ("1ms", 0)] {
        let shutdown = config(&[("shutdown.timeout", timeout)]).shutdown;
        assert_eq!(shutdown.requests_timeout().as_millis(), milliseconds, "{timeout}");
    }
}
