//! Secrets, which no output shows, and files that others can change or read.

use std::{
    fs::{Permissions, set_permissions},
    os::unix::fs::PermissionsExt,
};

use super::*;

#[test]
fn a_file_that_others_can_write_or_a_secret_that_they_can_read_is_a_warning() {
    let (_, secret) = file("top-secret");
    let path = secret.path().display();
    let in_file = format!("keys.memory.tokens_file = '{path}'");
    for (text, mode, secret_mode, warnings) in [
        ("keys.memory.tokens = 'top-secret'", 0o666, 0o600, 1),
        ("keys.memory.tokens = 'top-secret'", 0o602, 0o600, 1),
        ("keys.memory.tokens = 'top-secret'", 0o644, 0o600, 0),
        ("http.workers = 1", 0o666, 0o600, 1),
        (&in_file, 0o600, 0o640, 0),
        (&in_file, 0o600, 0o644, 1),
        (&in_file, 0o600, 0o602, 1),
        (&in_file, 0o622, 0o666, 3),
    ] {
        let (sources, toml) = file(text);
        set_permissions(toml.path(), Permissions::from_mode(mode)).unwrap();
        set_permissions(secret.path(), Permissions::from_mode(secret_mode)).unwrap();
        let found = Config::load(&sources).unwrap().warnings;
        assert_eq!(
            found.len(),
            warnings,
            "{text} {mode:o} {secret_mode:o}: {found:?}"
        );
        let first = format!(
            "{} (mode {mode:03o}): run chmod go-w ",
            toml.path().display()
        );
        assert_eq!(
            mode & 0o022 != 0,
            found.iter().any(|line| line.contains(&first)),
            "{found:?}"
        );
    }
}

#[test]
fn a_secret_can_contain_commas_and_tokens_are_a_list() {
    let url = file("postgres://shop:a,b@db/animals\n").1;
    let url = url.path().to_str().unwrap();
    assert_eq!(
        tokens(&config(&[("keys.memory.tokens", "a, b,,")])),
        ["a", "b"]
    );
    let postgres = config(&[POSTGRES[0], TOKENS, ("storage.postgres.url_file", url)]);
    let place = postgres.storage.backend().place();
    assert_eq!(place, "postgres db:5432/animals");
    let redis = config(&[
        REDIS[0],
        ("keys.redis.url", "redis://shop:a,b@localhost:7/3"),
    ]);
    assert_eq!(redis.api_keys.backend().place(), "redis localhost:7");
}

#[test]
fn a_secret_is_never_shown() {
    let secrets = [
        (
            "storage.postgres.url",
            "postgres://shop:top-secret@db/animals",
        ),
        (
            "storage.postgres.migrate_url",
            "postgres://shop:top-secret@db/animals",
        ),
        ("keys.redis.url", "redis://:top-secret@cache"),
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
        let is_hidden = |line: &&String| line.starts_with('#') && line.contains("\"(set)\"");
        let hidden = config.lines.iter().filter(is_hidden).count();
        assert_eq!(hidden, secrets.len(), "{:#?}", config.lines);
    }
}
