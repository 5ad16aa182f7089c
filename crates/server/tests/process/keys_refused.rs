//! `animal-store keys`, where it cannot do what it is asked for.

use std::process::Command;

use animal_store_test_servers::{FaultProxy, RedisServer, RedisSpace};

use crate::{
    keys::{keys, token_and_id},
    program::{Ended, Program},
};

#[track_caller]
fn assert_refused(ended: &Ended, code: i32, reason: &str) {
    assert_eq!((ended.code, &ended.stdout), (Some(code), &vec![]), "{ended:?}");
    assert!(ended.stderr.join("\n").contains(reason), "{reason}: {ended:?}");
}

#[test]
fn a_key_that_does_not_exist_is_neither_revoked_nor_rotated() {
    let space = RedisSpace::new();
    for command in ["revoke", "rotate"] {
        assert_refused(&keys(&space, &[command, "nobody"]).run(), 1, "no API key has the id nobody");
    }
}

#[test]
fn a_token_in_the_place_of_an_id_is_refused_and_not_repeated() {
    let space = RedisSpace::new();
    let (token, _) = token_and_id(&keys(&space, &["create", "--label", "x"]).run());
    for command in ["revoke", "rotate"] {
        let ended = keys(&space, &[command, &token]).run();
        assert_refused(&ended, 1, "that is a token, not an id");
        assert!(!ended.output().contains(&token), "{ended:?}");
        assert_refused(&keys(&space, &[command, "a b"]).run(), 1, "an id has 1 to 64 of");
    }
}

#[test]
fn what_the_command_line_does_not_allow_is_refused() {
    let space = RedisSpace::new();
    for (args, reason) in [
        (&["create"][..], "--label"),
        (&["create", "--label", " "], "a label must not be blank"),
        (&["create", "--label", "a\nb"], "a label must not have control characters"),
        (&["create", "--label", "x", "--scopes", "admin"], "a scope is read or write"),
        (&["create", "--label", "x", "--scopes", ""], "a scope is read or write"),
        (&["create", "--label", "x", "--expires-in", "90"], "a duration has a unit"),
        (&["create", "--label", "x", "--expires-in", "0s"], "at least 1s"),
        (&["create", "--label", "x", "--expires-in", "1000y"], "at most 100 years"),
        (&["create", "--label", "x", "--token", "y"], "--token"),
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
fn what_is_no_token_is_not_registered_and_not_shown() {
    let space = RedisSpace::new();
    for (input, reason) in [
        ("", "standard input holds no token"),
        ("\n", "standard input holds no token"),
        ("top secret", "standard input holds no token"),
        ("top-secret\ntop-secret-2", "standard input holds no token"),
        (&"top-secret".repeat(1000), "standard input holds no token"),
        ("animalstore_top-secret", "its checksum is wrong"),
    ] {
        let ended = keys(&space, &["create", "--label", "x", "--token-stdin"]).stdin(input).run();
        assert_refused(&ended, 1, reason);
        assert!(!ended.output().contains("secret"), "{ended:?}");
    }
    assert_eq!(space.names(), Vec::<String>::new());
}

#[test]
fn keys_that_the_configuration_holds_are_not_issued_by_command() {
    let ended = Program::with_key().args(&["keys", "list"]).run();
    assert_refused(&ended, 1, "keys.backend is memory");
}

#[test]
fn redis_that_is_away_or_refuses_is_an_error_without_the_password() {
    let server = RedisServer::with(&["--requirepass", "right"]);
    let away = Program::with_redis("redis://:top-secret@localhost:1").args(&["keys", "list"]).run();
    assert_refused(&away, 1, "the API key store is unavailable: Redis: Connection refused");

    let url = format!("redis://:top-secret@localhost:{}", server.port());
    let refused = Program::with_redis(&url).args(&["keys", "create", "--label", "x"]).run();
    assert_refused(&refused, 1, "WRONGPASS");
    for ended in [away, refused] {
        assert!(!ended.output().contains("top-secret"), "{ended:?}");
    }
}

#[test]
fn redis_that_does_not_answer_ends_the_command_in_time() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.freeze();

    let ended = Program::with_redis(&format!("redis://{}", proxy.address())).args(&["keys", "list"]).run();
    assert_refused(&ended, 1, "the API key store is unavailable");
}

/// Runs a command of the shell over these keys; returns its exit code, standard output and standard error.
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
fn a_token_that_nobody_could_see_is_said_to_be_lost() {
    let (code, _, stderr) = shell(&RedisSpace::new(), "create --label x >/dev/full");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("nobody has seen the new token of the API key"), "{stderr}");
}

#[test]
fn a_change_that_could_not_be_logged_is_no_success() {
    let (code, stdout, _) = shell(&RedisSpace::new(), "create --label x 2>/dev/full");
    assert_eq!(code, Some(1));
    assert!(stdout.starts_with("animalstore_"), "{stdout}");
}

#[test]
fn the_administrator_of_another_prefix_sees_nothing() {
    let space = RedisSpace::new();
    token_and_id(&keys(&space, &["create", "--label", "x"]).run());

    let other = keys(&space, &["list", "--json"]).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", "test-other:").run();
    assert_eq!((other.code, other.stdout), (Some(0), vec!["[]".to_owned()]));
}
