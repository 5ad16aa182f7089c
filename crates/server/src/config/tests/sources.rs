//! Secrets, which no output shows. `settings` owns how a secret is read.

use super::*;

#[test]
fn tokens_are_a_list_and_a_url_can_contain_commas() {
    let config = config(&[
        POSTGRES[0],
        ("storage.postgres.url", "postgres://shop:a,b@db/animals"),
        ("keys.memory.tokens", "a, b,,"),
    ]);
    let ApiKeysConfig::Memory(memory::MemoryApiKeysConfig { tokens }) = &config.stores.api_keys
    else {
        panic!("{:?}", config.stores.api_keys)
    };
    let tokens: Vec<_> = tokens.iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(tokens, ["a", "b"]);
    let place = config.stores.pets.backend().place();
    assert_eq!(place, "postgres db:5432/animals");
}

#[test]
fn a_secret_is_never_shown() {
    let secrets = [
        POSTGRES[1],
        ("storage.postgres.migrate_url", POSTGRES[1].1),
        REDIS[1],
        (
            "keys.redis.admin_url",
            "redis+sentinel://:top-secret@cache/shop?sentinel_password=top-secret",
        ),
        ("keys.memory.tokens", "top-secret"),
    ];
    for backends in [
        &[][..],
        &[POSTGRES[0], REDIS[0]],
        &[POSTGRES[0], ("keys.backend", "memory")],
    ] {
        let config = config(&[&secrets[..], backends].concat());
        assert!(!format!("{config:?}").contains("top-secret"), "{config:?}");
        let lines = config.values.lines();
        let is_hidden = |line: &&String| line.starts_with('#') && line.contains("\"(set)\"");
        let hidden = lines.iter().filter(is_hidden).count();
        assert_eq!(hidden, secrets.len(), "{lines:#?}");
    }
}
