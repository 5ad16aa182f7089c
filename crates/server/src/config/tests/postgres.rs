use std::time::Duration;

use animal_store_adapters_postgres::SchemaMode;

use super::*;
use crate::config::storage::PostgresConfig;

const BACKEND: (&str, &str) = ("ANIMAL_STORE_STORAGE__BACKEND", "postgres");
const URL: (&str, &str) = ("ANIMAL_STORE_STORAGE__POSTGRES__URL", "postgres://shop:top-secret@db/animals");

fn postgres(variables: &[(&str, &str)]) -> PostgresConfig {
    let variables: Vec<_> = variables.iter().copied().chain([BACKEND]).collect();
    let config = Config::load(&environment(&variables)).unwrap();
    let StorageConfig::Postgres(postgres) = config.storage else { panic!("animals in PostgreSQL") };
    *postgres
}

/// What is wrong with the keys of PostgreSQL, where all else is right.
fn postgres_problems(variables: &[(&str, &str)]) -> Vec<String> {
    let variables: Vec<_> = variables.iter().copied().chain([BACKEND]).collect();
    problems(&environment(&variables))
}

#[test]
fn a_url_is_enough_for_animals_in_postgresql() {
    let PostgresConfig { endpoint, migrate_endpoint, settings } = postgres(&[URL]);

    assert_eq!(endpoint.to_string(), "db:5432/animals");
    assert_eq!(migrate_endpoint.to_string(), "db:5432/animals");
    assert_eq!(settings.schema, SchemaMode::Migrate);
    assert!(!settings.required_at_start && !settings.transaction_pooling);
    assert_eq!((settings.connections_per_worker, settings.max_waiting_creates), (2, 1000));
    assert_eq!((settings.connect_timeout, settings.timeout), (Duration::from_secs(2), Duration::from_secs(2)));
}

#[test]
fn every_key_of_postgresql_can_be_set() {
    let PostgresConfig { migrate_endpoint, settings, .. } = postgres(&[
        URL,
        ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", "postgres://owner@direct:7/animals"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE", "check"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__REQUIRED_AT_START", "true"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__CONNECTIONS_PER_WORKER", "64"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__CONNECT_TIMEOUT", "10ms"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1m"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MAX_WAITING_CREATES", "100000"),
    ]);

    assert_eq!(migrate_endpoint.to_string(), "direct:7/animals");
    assert_eq!(settings.schema, SchemaMode::Check);
    assert!(settings.required_at_start && settings.transaction_pooling);
    assert_eq!((settings.connections_per_worker, settings.max_waiting_creates), (64, 100_000));
    assert_eq!((settings.connect_timeout, settings.timeout), (Duration::from_millis(10), Duration::from_mins(1)));
}

#[test]
fn animals_in_postgresql_need_to_know_where_it_is() {
    let url = "storage.postgres.url (ANIMAL_STORE_STORAGE__POSTGRES__URL)";
    assert_eq!(postgres_problems(&[]), [format!("{url} is required where storage.backend is postgres")]);

    for (value, problem) in [
        ("top-secret", "must be postgres://[user[:password]@]host"),
        ("mysql://shop:top-secret@localhost/animals", "must be postgres://[user[:password]@]host"),
        ("postgres://shop:top-secret@localhost", "must be postgres://[user[:password]@]host"),
        ("postgres://shop:x@top-secret@localhost/animals", "must be postgres://[user[:password]@]host"),
        ("postgres://shop:x?top-secret@localhost/animals", "must be postgres://[user[:password]@]host"),
        ("postgres://localhost/animals?passwort=top-secret", "has an option, or a value of one, that is not supported"),
        ("postgres://localhost/animals?sslmode=top-secret", "must have an sslmode of disable, prefer, require,"),
        (
            "postgres://shop:top-secret@localhost/animals?sslmode=verify-full&sslrootcert=/nowhere",
            "has an sslrootcert that cannot be used: No such file",
        ),
    ] {
        for (key, others) in [("URL", &[][..]), ("MIGRATE_URL", &[URL])] {
            let variable = format!("ANIMAL_STORE_STORAGE__POSTGRES__{key}");
            let variables = [&[(variable.as_str(), value)], others].concat();
            let [found] = &postgres_problems(&variables)[..] else { panic!("{value}") };
            let expected = format!("storage.postgres.{} ({variable}) {problem}", key.to_lowercase());
            assert!(found.starts_with(&expected) && !found.contains("top-secret"), "{found}");
        }
    }
}

#[test]
fn behind_a_pooler_migrations_need_another_way() {
    let pooling = ("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true");
    let expected = "storage.postgres.migrate_url (ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL) is required where \
                    storage.postgres.transaction_pooling is true";
    assert_eq!(postgres_problems(&[URL, pooling]), [expected]);
}

#[test]
fn values_of_postgresql_out_of_range_are_refused() {
    let key = |name: &str| format!("storage.postgres.{} (ANIMAL_STORE_STORAGE__POSTGRES__{name})", name.to_lowercase());
    for (name, values, problem) in [
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
            let [found] = &postgres_problems(&[URL, (&variable, value)])[..] else { panic!("{name}={value}") };
            assert!(found.starts_with(&format!("{} {problem}", key(name))), "{found}");
        }
    }
}

#[test]
fn everything_that_is_wrong_with_postgresql_is_listed() {
    let found = postgres_problems(&[
        ("ANIMAL_STORE_STORAGE__POSTGRES__URL", "x"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", "x"),
        ("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "x"),
    ]);
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn urls_of_postgresql_are_never_shown() {
    let migrate = ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", "postgres://owner:top-secret@db/animals");
    let sources = environment(&[BACKEND, URL, migrate]);
    let shown = Config::effective(&sources);

    for name in ["storage.postgres.url", "storage.postgres.migrate_url"] {
        assert!(shown.iter().any(|(key, value)| key.name == name && value == "(set)"), "{name}");
    }
    assert!(!format!("{shown:?} {:?}", Config::load(&sources).unwrap()).contains("top-secret"));
}

#[test]
fn a_url_of_postgresql_may_stand_in_a_file() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "postgres://shop:a,b@db/animals\n").unwrap();
    let path = secret.path().to_str().unwrap();

    let config = postgres(&[("ANIMAL_STORE_STORAGE__POSTGRES__URL_FILE", path)]);
    assert_eq!(config.endpoint.to_string(), "db:5432/animals");
    let config = postgres(&[URL, ("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL_FILE", path)]);
    assert_eq!(config.migrate_endpoint.to_string(), "db:5432/animals");
}
