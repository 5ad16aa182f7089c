//! The keys `storage.postgres.*`. `adapters-postgres` tests the parsing of URLs.

use std::time::Duration;

use animal_store_adapters_postgres::SchemaMode;

use super::*;
use crate::config::storage::postgres::PostgresConfig;

const BACKEND: (&str, &str) = ("ANIMAL_STORE_STORAGE__BACKEND", "postgres");
const TOKENS: (&str, &str) = ("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a");
const URL: (&str, &str) = ("ANIMAL_STORE_STORAGE__POSTGRES__URL", "postgres://shop:top-secret@db/animals");
const MIGRATE_URL: &str = "ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL";

fn postgres(variables: &[(&str, &str)]) -> PostgresConfig {
    let config = Config::load(&environment(&[variables, &[BACKEND, TOKENS]].concat())).unwrap();
    let StorageConfig::Postgres(postgres) = config.storage else { panic!("pets in PostgreSQL") };
    *postgres
}

/// Returns the errors if pets are in PostgreSQL and all else is valid.
fn postgres_errors(variables: &[(&str, &str)]) -> Vec<String> {
    errors(&environment(&[variables, &[BACKEND, TOKENS]].concat()))
}

#[test]
fn a_url_is_enough() {
    let PostgresConfig { endpoint, migrate_endpoint, settings } = postgres(&[URL]);

    assert_eq!((&*endpoint.to_string(), &*migrate_endpoint.to_string()), ("db:5432/animals", "db:5432/animals"));
    assert_eq!(settings.schema, SchemaMode::Migrate);
    assert!(!settings.required_at_start && !settings.transaction_pooling);
    assert_eq!(settings.connections_per_worker, 2);
    assert_eq!((settings.max_waiting_reads, settings.max_waiting_creates), (2000, 1000));
    assert_eq!((settings.connect_timeout, settings.timeout), (Duration::from_secs(2), Duration::from_secs(2)));
}

#[test]
fn every_key_can_be_set() {
    let PostgresConfig { migrate_endpoint, settings, .. } = postgres(&[
        URL,
        (MIGRATE_URL, "postgres://owner@direct:7/animals"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE", "check"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__REQUIRED_AT_START", "true"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__CONNECTIONS_PER_WORKER", "64"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__CONNECT_TIMEOUT", "10ms"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1m"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MAX_WAITING_READS", "99999"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MAX_WAITING_CREATES", "100000"),
    ]);

    assert_eq!(migrate_endpoint.to_string(), "direct:7/animals");
    assert_eq!(settings.schema, SchemaMode::Check);
    assert!(settings.required_at_start && settings.transaction_pooling);
    assert_eq!(settings.connections_per_worker, 64);
    assert_eq!((settings.max_waiting_reads, settings.max_waiting_creates), (99_999, 100_000));
    assert_eq!((settings.connect_timeout, settings.timeout), (Duration::from_millis(10), Duration::from_mins(1)));
}

#[test]
fn only_postgresql_has_connections_for_each_worker() {
    let storage = |variables: &[_]| Config::load(&environment(&[variables, &[TOKENS]].concat())).unwrap().storage;
    let per_worker = ("ANIMAL_STORE_STORAGE__POSTGRES__CONNECTIONS_PER_WORKER", "3");
    for (variables, connections) in
        [(&[BACKEND, URL, per_worker][..], 12), (&[per_worker], 0), (&[(BACKEND.0, "memory"), per_worker], 0)]
    {
        assert_eq!(storage(variables).connections(4), connections, "{variables:?}");
    }
    assert_eq!(storage(&[BACKEND, URL]).to_string(), "postgres db:5432/animals");
}

#[test]
fn a_valid_url_is_required() {
    let url = "storage.postgres.url (ANIMAL_STORE_STORAGE__POSTGRES__URL)";
    assert_eq!(postgres_errors(&[]), [format!("{url} is required if storage.backend is postgres")]);

    let invalid = "mysql://shop:top-secret@localhost/animals";
    let found = postgres_errors(&[(URL.0, invalid), (MIGRATE_URL, invalid)]);
    let [url_error, migrate_error] = &found[..] else { panic!("two errors: {found:?}") };
    assert!(url_error.starts_with(url), "{url_error}");
    assert!(migrate_error.starts_with(&format!("storage.postgres.migrate_url ({MIGRATE_URL})")), "{migrate_error}");
    assert!(found.iter().all(|error| error.contains("postgres://") && !error.contains("top-secret")), "{found:?}");
}

#[test]
fn transaction_pooling_requires_a_url_for_migrations() {
    let pooling = ("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true");
    let required = "is required if storage.postgres.transaction_pooling is true";
    assert_eq!(postgres_errors(&[URL, pooling]), [format!("storage.postgres.migrate_url ({MIGRATE_URL}) {required}")]);
}

#[test]
fn values_out_of_range_are_refused() {
    for (name, values, rule) in [
        ("MIGRATE", &["", "never", "on_start"][..], "must be on-start or check"),
        ("REQUIRED_AT_START", &["", "yes", "True"], "must be true or false"),
        ("TRANSACTION_POOLING", &["", "1"], "must be true or false"),
        ("CONNECTIONS_PER_WORKER", &["0", "65", "-1", "two"], "must be a whole number from 1 to 64"),
        ("CONNECT_TIMEOUT", &["9ms", "61s", "5", "0s"], "must be a duration from 10ms to 1m"),
        ("TIMEOUT", &["9ms", "61s", "5", "0s"], "must be a duration from 10ms to 1m"),
        ("MAX_WAITING_CREATES", &["0", "100001", "1.5"], "must be a whole number from 1 to 100000"),
    ] {
        for value in values {
            let variable = format!("ANIMAL_STORE_STORAGE__POSTGRES__{name}");
            let [found] = &postgres_errors(&[URL, (&variable, value)])[..] else { panic!("{name}={value}") };
            let expected = format!("storage.postgres.{} ({variable}) {rule}", name.to_lowercase());
            assert!(found.starts_with(&expected), "{found}");
        }
    }
}

#[test]
fn urls_are_never_shown() {
    let sources = environment(&[BACKEND, TOKENS, URL, (MIGRATE_URL, "postgres://owner:top-secret@db/animals")]);

    for key in ["storage.postgres.url", "storage.postgres.migrate_url"] {
        assert_eq!(shown(&sources, key), "(set)");
    }
    assert!(!format!("{:?}", Config::load(&sources).unwrap()).contains("top-secret"));
}

#[test]
fn a_url_can_be_in_a_file() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "postgres://shop:a,b@db/animals\n").unwrap();

    let config = postgres(&[("ANIMAL_STORE_STORAGE__POSTGRES__URL_FILE", secret.path().to_str().unwrap())]);
    assert_eq!(config.endpoint.to_string(), "db:5432/animals");
}
