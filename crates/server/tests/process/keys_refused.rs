//! `animal-store keys`: commands that fail.

use animal_store_test_servers::{FaultProxy, RedisServer, RedisSpace};

use crate::{
    keys::{keys, token_and_id},
    program::Program,
};

#[test]
fn an_unknown_id_is_refused_and_a_token_in_its_place_is_not_repeated() {
    let space = RedisSpace::new();
    let (token, _) = token_and_id(&keys(&space, &["create", "--label", "x"]).run());
    for command in ["revoke", "rotate"] {
        keys(&space, &[command, "unknown"]).run().assert_refused(1, &["no API key has the id unknown"]);
        keys(&space, &[command, "a b"]).run().assert_refused(1, &["1 to 64"]);
        let exited = keys(&space, &[command, &token]).run();
        exited.assert_refused(1, &["the argument is a token, not an id"]);
        assert!(!exited.output().contains(&token), "{exited:?}");
    }
}

#[test]
fn invalid_arguments_are_refused() {
    let space = RedisSpace::new();
    for (args, reason) in [
        (&["create"][..], "--label"),
        (&["create", "--label", " "], "not only white space"),
        (&["create", "--label", "x", "--scopes", "admin"], "read or write"),
        (&["create", "--label", "x", "--expires-in", "0s"], "a duration from 1s to 100years"),
        (&["create", "--label", "x", "--token", "y"], "--token"),
        (&["list", "--unused-for", "90"], "a duration from 0s to 100years"),
        (&["revoke"], "ID"),
        (&["rotate", "x", "--grace", "-1h"], "-1"),
        (&[], "create"),
    ] {
        keys(&space, args).run().assert_refused(2, &[reason]);
    }
    assert_eq!(space.names(), Vec::<String>::new());
}

#[test]
fn an_invalid_token_is_not_registered_and_not_shown() {
    let space = RedisSpace::new();
    for (input, reason) in [
        ("", "does not contain a valid token"),
        ("top-secret\ntop-secret-2", "does not contain a valid token"),
        ("animalstore_top-secret", "checksum"),
    ] {
        let exited = keys(&space, &["create", "--label", "x", "--token-stdin"]).stdin(input).run();
        assert!(!exited.assert_refused(1, &[reason]).output().contains("secret"), "{exited:?}");
    }
    assert_eq!(space.names(), Vec::<String>::new());
}

#[test]
fn keys_in_memory_cannot_be_administered() {
    Program::with_key().args(&["keys", "list"]).run().assert_refused(1, &["keys.backend is memory"]);
}

#[test]
fn a_failure_of_redis_is_an_error_without_the_password() {
    let server = RedisServer::with(&["--requirepass", "right"]);
    for (port, reason) in [(1, "Connection refused"), (server.port(), "WRONGPASS")] {
        let url = format!("redis://:top-secret@localhost:{port}");
        let exited = Program::with_redis_url(&url).args(&["keys", "list"]).run();
        assert!(!exited.assert_refused(1, &[reason]).output().contains("top-secret"), "{exited:?}");
    }
}

#[test]
fn a_frozen_redis_fails_the_command_after_the_timeout() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.freeze();

    let program = Program::with_redis_url(&format!("redis://{}", proxy.address()));
    program.args(&["keys", "list"]).run().assert_refused(1, &["unavailable"]);
}

#[test]
fn a_token_that_cannot_be_printed_is_reported_as_lost() {
    let space = RedisSpace::new();
    let create = keys(&space, &["create", "--label", "x"]);
    create.run_by_shell(r#"exec "$@" >/dev/full"#).run().assert_refused(1, &["could not be printed"]);
}

#[test]
fn a_change_that_cannot_be_logged_is_not_a_success() {
    let space = RedisSpace::new();
    let create = keys(&space, &["create", "--label", "x"]);
    let exited = create.run_by_shell(r#"exec "$@" 2>/dev/full"#).run();
    assert_eq!(exited.code, Some(1));
    assert!(exited.stdout[0].starts_with("animalstore_"), "{exited:?}");
}

#[test]
fn keys_of_another_prefix_are_not_listed() {
    let space = RedisSpace::new();
    token_and_id(&keys(&space, &["create", "--label", "x"]).run());

    let other = keys(&space, &["list", "--json"]).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", "test-other:").run();
    assert_eq!(other.assert_success().stdout, ["[]"]);
}
