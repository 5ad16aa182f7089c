//! The keys `storage.sqlite.*`, and the backend of API keys that the storage implies.

use std::{env::current_dir, path::Path, time::Duration};

use super::*;

const STORAGE: &str = "ANIMAL_STORE_STORAGE__BACKEND";
const KEYS: &str = "ANIMAL_STORE_KEYS__BACKEND";
const TOKENS: (&str, &str) = ("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a");
const PATH: &str = "ANIMAL_STORE_STORAGE__SQLITE__PATH";
const URLS: [(&str, &str); 2] =
    [("ANIMAL_STORE_STORAGE__POSTGRES__URL", "postgres://db/animals"), ("ANIMAL_STORE_KEYS__REDIS__URL", "redis://db")];

fn sqlite(variables: &[(&str, &str)]) -> SqliteConfig {
    let StorageConfig::Sqlite(sqlite) = Config::load(&environment(variables)).unwrap().storage else {
        panic!("pets in the file")
    };
    sqlite
}

#[test]
fn every_key_can_be_set() {
    let SqliteConfig { path, settings } = sqlite(&[]);
    assert_eq!(path, current_dir().unwrap().join("animal-store.db"));
    assert_eq!((settings.timeout, settings.max_waiting_reads), (Duration::from_secs(2), 2000));
    assert_eq!(settings.max_waiting_creates, 1000);

    let SqliteConfig { path, settings } = sqlite(&[
        (PATH, "/data/pets.db"),
        ("ANIMAL_STORE_STORAGE__SQLITE__TIMEOUT", "10ms"),
        ("ANIMAL_STORE_STORAGE__SQLITE__MAX_WAITING_READS", "1"),
        ("ANIMAL_STORE_STORAGE__SQLITE__MAX_WAITING_CREATES", "100000"),
        ("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", "1s"),
    ]);
    assert_eq!((path.as_path(), settings.timeout), (Path::new("/data/pets.db"), Duration::from_millis(10)));
    assert_eq!((settings.max_waiting_reads, settings.max_waiting_creates), (1, 100_000));
    assert_eq!(settings.idempotency_retention, Duration::from_secs(1));
}

#[test]
fn the_file_needs_a_path() {
    let expected = format!("storage.sqlite.path ({PATH}) must be the path of a file, not \"\"");
    assert_eq!(errors(&environment(&[(PATH, "")])), [expected]);
}

#[test]
fn tokens_or_the_storage_imply_the_backend_of_keys() {
    for (variables, backend) in [
        (&[][..], "sqlite"),
        (&[(KEYS, "")], "sqlite"),
        (&[(STORAGE, "sqlite")], "sqlite"),
        (&[(STORAGE, "memory")], "memory"),
        (&[TOKENS], "memory"),
        (&[TOKENS, (STORAGE, "postgres")], "memory"),
        (&[TOKENS, (KEYS, "sqlite")], "sqlite"),
        (&[TOKENS, (KEYS, "redis")], "redis"),
        (&[(STORAGE, "memory"), (KEYS, "sqlite")], "sqlite"),
        (&[(STORAGE, "sqlite"), (KEYS, "memory")], "memory"),
        (&[(STORAGE, "postgres"), (KEYS, "redis")], "redis"),
        (&[(STORAGE, "postgres"), (KEYS, "memory")], "memory"),
    ] {
        let sources = environment(&[variables, &URLS].concat());
        assert_eq!(shown(&sources, "keys.backend"), backend, "{variables:?}");
        let keys = Config::load(&sources).unwrap().keys.to_string();
        assert_eq!(keys.split(' ').next(), Some(backend), "{variables:?}");
    }
}

#[test]
fn with_pets_in_postgresql_keys_are_never_in_a_file() {
    let postgres = |keys: &[(&str, &str)]| errors(&environment(&[keys, &[(STORAGE, "postgres")], &URLS].concat()));
    let label = format!("keys.backend ({KEYS})");
    let advice = "set it to redis, or set keys.memory.tokens";
    assert_eq!(postgres(&[]), [format!("{label} is required if storage.backend is postgres: {advice}")]);

    let reason = "because each instance would have a file of its own";
    let expected = format!("{label} must not be sqlite if storage.backend is postgres, {reason}: {advice}");
    assert_eq!(postgres(&[(KEYS, "sqlite")]), [expected]);
}

#[test]
fn tokens_that_are_invalid_are_one_error_with_pets_in_postgresql() {
    let variables = [(STORAGE, "postgres"), ("ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE", "/nowhere")];
    let found = errors(&environment(&[&variables[..], &URLS].concat()));
    assert!(matches!(&found[..], [error] if error.starts_with("keys.memory.tokens (")), "{found:?}");
}
