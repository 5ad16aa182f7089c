//! The backends that values imply, the part of the configuration that a command reads, and what it prints.

use super::*;

#[test]
fn tokens_or_the_storage_imply_the_backend_of_keys() {
    let backend = |name| ("keys.backend", name);
    let storage = |name| ("storage.backend", name);
    for (settings, expected) in [
        (&[][..], "sqlite"),
        (&[backend("")], "sqlite"),
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
        let config = config(&[settings, &[POSTGRES[1], REDIS[1]]].concat());
        let line = format!("keys.backend = \"{expected}\" # ");
        assert!(config.lines.iter().any(|shown| shown.starts_with(&line)), "{settings:?}: {:#?}", config.lines);
        assert_eq!(config.keys.to_string().split(' ').next(), Some(expected), "{settings:?}");
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
    let Ok((KeysConfig::Redis(redis), _)) = load(&keys(&REDIS), KeysConfig::read_for_command) else { panic!("Redis") };
    assert!(redis.directory.timeout > RedisSettings::default().timeout, "a command waits for longer than a request");
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
