//! `animal-store keys`: commands that fail.

use std::process::Command;

use animal_store_test_servers::{FaultProxy, RedisServer, RedisSpace};

use crate::{
    keys::{keys, token_and_id},
    program::{Exited, Program},
};

#[track_caller]
fn assert_refused(exited: &Exited, code: i32, reason: &str) {
    assert_eq!((exited.code, &exited.stdout), (Some(code), &vec![]), "{exited:?}");
    assert!(exited.stderr.join("\n").contains(reason), "{reason}: {exited:?}");
}

#[test]
fn a_key_that_does_not_exist_is_neither_revoked_nor_rotated() {
    let space = RedisSpace::new();
    for command in ["revoke", "rotate"] {
        assert_refused(&keys(&space, &[command, "unknown"]).run(), 1, "no API key has the id unknown");
    }
}

#[test]
fn a_token_instead_of_an_id_is_refused_and_not_repeated() {
    let space = RedisSpace::new();
    let (token, _) = token_and_id(&keys(&space, &["create", "--label", "x"]).run());
    for command in ["revoke", "rotate"] {
        let exited = keys(&space, &[command, &token]).run();
        assert_refused(&exited, 1, "the argument is a token, not an id");
        assert!(!exited.output().contains(&token), "{exited:?}");
        assert_refused(&keys(&space, &[command, "a b"]).run(), 1, "1 to 64");
    }
}

#[test]
fn invalid_arguments_are_refused() {
    let space = RedisSpace::new();
    for (args, reason) in [
        (&["create"][..], "--label"),
        (&["create", "--label", " "], "must not be blank"),
        (&["create", "--label", "a\nb"], "control characters"),
        (&["create", "--label", "x", "--scopes", "admin"], "read or write"),
        (&["create", "--label", "x", "--scopes", ""], "read or write"),
        (&["create", "--label", "x", "--expires-in", "90"], "a duration from 1s to 100years"),
        (&["create", "--label", "x", "--expires-in", "0s"], "a duration from 1s to 100years"),
        (&["create", "--label", "x", "--expires-in", "1000y"], "from 1s to 100years"),
        (&["create", "--label", "x", "--token", "y"], "--token"),
        (&["list", "--unused-for", "90"], "a duration from 0s to 100years"),
        (&["revoke"], "ID"),
        (&["rotate", "x", "--grace", "-1h"], "-1"),
        (&[], "create"),
        (&["show"], "show"),
    ] {
        assert_refused(&keys(&space, args).run(), 2, reason);
    }
    assert_eq!(space.names(), Vec::<String>::new());
}

#[test]
fn an_invalid_token_is_not_registered_and_not_shown() {
    let space = RedisSpace::new();
    for (input, reason) in [
        ("", "does not contain a valid token"),
        ("\n", "does not contain a valid token"),
        ("top secret", "does not contain a valid token"),
        ("top-secret\ntop-secret-2", "does not contain a valid token"),
        (&"top-secret".repeat(1000), "does not contain a valid token"),
        ("animalstore_top-secret", "checksum"),
    ] {
        let exited = keys(&space, &["create", "--label", "x", "--token-stdin"]).stdin(input).run();
        assert_refused(&exited, 1, reason);
        assert!(!exited.output().contains("secret"), "{exited:?}");
    }
    assert_eq!(space.names(), Vec::<String>::new());
}

#[test]
fn keys_in_memory_cannot_be_administered() {
    let exited = Program::with_key().args(&["keys", "list"]).run();
    assert_refused(&exited, 1, "keys.backend is memory");
}

#[test]
fn a_failure_of_redis_is_an_error_without_the_password() {
    let server = RedisServer::with(&["--requirepass", "right"]);
    let unavailable = Program::with_redis_url("redis://:top-secret@localhost:1").args(&["keys", "list"]).run();
    assert_refused(&unavailable, 1, "Connection refused");

    let url = format!("redis://:top-secret@localhost:{}", server.port());
    let refused = Program::with_redis_url(&url).args(&["keys", "create", "--label", "x"]).run();
    assert_refused(&refused, 1, "WRONGPASS");
    for exited in [unavailable, refused] {
        assert!(!exited.output().contains("top-secret"), "{exited:?}");
    }
}

#[test]
fn a_frozen_redis_fails_the_command_after_the_timeout() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.freeze();

    let program = Program::with_redis_url(&format!("redis://{}", proxy.address()));
    let exited = program.env("ANIMAL_STORE_KEYS__REDIS__TIMEOUT", "50ms").args(&["keys", "list"]).run();
    assert_refused(&exited, 1, "unavailable");
}

/// Runs `animal-store keys` in a shell. Returns its exit code, standard output and standard error.
fn shell(space: &RedisSpace, arguments: &str) -> (Option<i32>, String, String) {
    let output = Command::new("sh")
        .args(["-c", &format!("exec {} keys {arguments}", env!("CARGO_BIN_EXE_animal-store"))])
        .env_clear()
        .env("ANIMAL_STORE_KEYS__BACKEND", "redis")
        .env("ANIMAL_STORE_KEYS__REDIS__URL", space.url())
        .env("ANIMAL_STORE_KEYS__REDIS__PREFIX", space.prefix())
        .output()
        .expect("the shell runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_token_that_cannot_be_printed_is_reported_as_lost() {
    let (code, _, stderr) = shell(&RedisSpace::new(), "create --label x >/dev/full");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("could not be printed"), "{stderr}");
}

#[test]
fn a_change_that_cannot_be_logged_is_not_a_success() {
    let (code, stdout, _) = shell(&RedisSpace::new(), "create --label x 2>/dev/full");
    assert_eq!(code, Some(1));
    assert!(stdout.starts_with("animalstore_"), "{stdout}");
}

#[test]
fn keys_of_another_prefix_are_not_listed() {
    let space = RedisSpace::new();
    token_and_id(&keys(&space, &["create", "--label", "x"]).run());

    let other = keys(&space, &["list", "--json"]).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", "test-other:").run();
    assert_eq!((other.code, other.stdout), (Some(0), vec!["[]".to_owned()]));
}
