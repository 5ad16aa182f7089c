//! Secrets, which no output shows, and files that others can change or read. `settings` owns how a secret is read, and
//! `adapter-kit/src/files.rs` which file is believed.

use std::{
    fs::{Permissions, set_permissions},
    os::unix::fs::PermissionsExt,
};

use super::*;

#[test]
fn a_file_that_others_can_write_or_a_secret_that_they_can_read_is_a_warning() {
    let secret = file("top-secret");
    let path = secret.path().display();
    let toml = file(&format!("keys.memory.tokens_file = '{path}'"));
    for (mode, secret_mode, warnings) in [
        (0o644, 0o640, &[][..]),
        (0o666, 0o600, &["666): run chmod go-w"]),
        (0o600, 0o644, &["644): run chmod o-rwx"]),
        (0o600, 0o602, &["602): run chmod go-w"]),
        (
            0o622,
            0o666,
            &[
                "622): run chmod go-w",
                "666): run chmod go-w",
                "666): run chmod o-rwx",
            ],
        ),
    ] {
        for (file, mode) in [(&toml, mode), (&secret, secret_mode)] {
            set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        }
        let found = Config::load(&in_file(&toml)).unwrap().values.warnings();
        assert_eq!(found.len(), warnings.len(), "{found:?}");
        // Their order is that of the names of the files.
        for warning in warnings {
            let is_given = found.iter().any(|line| line.contains(warning));
            assert!(is_given, "{warning}: {found:?}");
        }
    }
}

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
