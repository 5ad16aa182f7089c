//! The backends that values imply, and the part of the configuration that a command reads.

use super::*;

#[test]
fn tokens_or_the_storage_imply_the_backend_of_keys() {
    let backend = |name| ("keys.backend", name);
    let storage = |name| ("storage.backend", name);
    for (settings, expected) in [
        (&[][..], "sqlite"),
        (&[backend("")], "sqlite"),
        (&[storage("sqlite")], "sqlite"),
        (&[storage("memory")], "memory"),
        (&[TOKENS], "memory"),
        (&[TOKENS, storage("postgres")], "memory"),
        (&[TOKENS, backend("sqlite")], "sqlite"),
        (&[TOKENS, backend("redis")], "redis"),
        (&[storage("memory"), backend("sqlite")], "sqlite"),
        (&[storage("sqlite"), backend("memory")], "memory"),
        (&[storage("postgres"), backend("redis")], "redis"),
        (&[storage("postgres"), backend("memory")], "memory"),
    ] {
        let sources = keys(&[settings, &[POSTGRES[1], REDIS[1]]].concat());
        let shown = line(&sources, "keys.backend");
        assert!(shown.starts_with(&format!("keys.backend = \"{expected}\" # ")), "{settings:?}: {shown}");
        let keys = Config::load(&sources).unwrap().keys.to_string();
        assert_eq!(keys.split(' ').next(), Some(expected), "{settings:?}");
    }
}

#[test]
fn only_postgresql_has_connections_for_each_worker() {
    let per_worker = ("storage.postgres.connections_per_worker", "3");
    for (settings, connections) in [
        (&[POSTGRES[0], POSTGRES[1], TOKENS, per_worker][..], 12),
        (&[per_worker], 0),
        (&[("storage.backend", "memory"), per_worker], 0),
    ] {
        assert_eq!(config(settings).storage.connections(4), connections, "{settings:?}");
    }
}

#[test]
fn a_command_reads_only_the_part_that_it_uses() {
    let reads = [
        |sources: &Sources| load(sources, |values| Some(read_management(values))).map(drop),
        |sources: &Sources| load(sources, StorageConfig::read).map(drop),
        |sources: &Sources| load(sources, KeysConfig::read_for_command).map(drop),
        |sources: &Sources| load(sources, |values| Some(TlsConfig::read(values))).map(drop),
    ];
    // The commands that are refused: `health`, of pets, `keys`, the certificate of `doctor`.
    for (settings, refused) in [
        (&[("http.tls.cert_file", "/nowhere"), ("http.tls.key_file", "/nowhere")][..], [false, false, false, true]),
        (&[("http.lisen", "127.0.0.1:80")], [false, false, false, true]),
        (&[("http.listen", "127.0.0.1:8081")], [false; 4]),
        (&[("management.lisen", "127.0.0.1:80")], [true, false, false, false]),
        (&[("storage.postgres.url_file", "/nowhere")], [false, true, false, false]),
        (&[("storage.backend", "disk")], [false, true, true, false]),
        (&[("storage.backend", "postgres"), TOKENS], [false, true, false, false]),
        (&[("storage.backend", "postgres"), POSTGRES[1]], [false, false, true, false]),
        (&[("keys.redis.url_file", "/nowhere")], [false, false, true, false]),
        (&[("storage.backend", "memory"), ("http.listen", "0.0.0.0:80")], [false; 4]),
        // It can be a misspelt section of any command.
        (&[("kyes.backend", "redis")], [true; 4]),
    ] {
        let sources = keys(settings);
        assert_eq!(reads.map(|read| read(&sources).is_err()), refused, "{settings:?}");
        assert!(Config::load(&sources).is_err(), "{settings:?}");
    }
    let (broken, _file) = file("[http\n");
    assert_eq!(reads.map(|read| read(&broken).is_err()), [true; 4]);
}

#[test]
fn a_command_waits_for_redis_for_longer_than_a_request() {
    let (keys, _) = load(&keys(&REDIS), KeysConfig::read_for_command).unwrap();
    let KeysConfig::Redis(redis) = keys else { panic!("{keys:?}") };
    assert!(redis.directory.timeout > RedisSettings::default().timeout);
}
