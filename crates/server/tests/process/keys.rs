//! `animal-store keys`: output and effect of each command.

use animal_store_test_servers::RedisSpace;
use serde_json::Value;

use crate::{
    pets::status,
    program::{Exited, Program},
};

/// Program that runs `animal-store keys` with these arguments.
pub(crate) fn keys(space: &RedisSpace, args: &[&str]) -> Program {
    Program::with_redis(space).args(&["keys"]).args(args)
}

/// Returns the printed token and the logged id.
#[track_caller]
pub(crate) fn token_and_id(exited: &Exited) -> (String, String) {
    assert_eq!(exited.code, Some(0), "{exited:?}");
    let [token] = &exited.stdout[..] else { panic!("a token and nothing else: {exited:?}") };
    (token.clone(), event(exited)["api_key"].as_str().expect("an id").to_owned())
}

/// Returns the only line of standard error.
#[track_caller]
fn event(exited: &Exited) -> Value {
    let [line] = &exited.stderr[..] else { panic!("one line: {exited:?}") };
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[track_caller]
fn list(space: &RedisSpace) -> Vec<Value> {
    let exited = keys(space, &["list", "--json"]).run();
    assert_eq!((exited.code, &exited.stderr), (Some(0), &vec![]), "{exited:?}");
    serde_json::from_str(&exited.stdout.join("\n")).expect("a JSON array")
}

#[track_caller]
fn assert_statuses(space: &RedisSpace, expected: &[(&str, u16)]) {
    let mut running = Program::with_redis(space).start();
    for (token, expected) in expected {
        assert_eq!(status(running.address(), token), *expected, "{token}");
    }
}

#[test]
fn a_created_key_is_printed_once_and_logged_by_its_id() {
    let space = RedisSpace::new();
    let exited = keys(&space, &["create", "--label", "web shop"]).run();

    let (token, id) = token_and_id(&exited);
    assert!(token.starts_with("animalstore_") && token.len() == 61, "{token}");
    let event = event(&exited);
    assert_eq!((&event["message"], &event["target"]), (&"API key created".into(), &"audit".into()));
    assert_eq!((&event["api_key_label"], &event["scopes"]), (&"web shop".into(), &"read,write".into()));

    let [entry] = &list(&space)[..] else { panic!("one token") };
    assert_eq!((&entry["id"], &entry["label"]), (&id.into(), &"web shop".into()));
    assert_eq!((&entry["scopes"], &entry["expires"]), (&serde_json::json!(["read", "write"]), &Value::Null));
    assert_eq!(entry["last_four"], token[57..]);
    assert_statuses(&space, &[(&token, 200), (&token[..60], 401)]);
}

#[test]
fn a_key_can_have_one_scope_and_a_lifetime() {
    let space = RedisSpace::new();
    let args = ["create", "--label", "writer", "--scopes", "write", "--expires-in", "90d"];
    let (token, _) = token_and_id(&keys(&space, &args).run());

    let [entry] = &list(&space)[..] else { panic!("one token") };
    assert_eq!(entry["scopes"], serde_json::json!(["write"]));
    let time = |member: &str| humantime::parse_rfc3339(entry[member].as_str().expect("a text")).expect("RFC 3339");
    let days = time("expires").duration_since(time("created")).expect("a later time").as_secs_f64() / 86_400.0;
    assert!((days - 90.0).abs() < 0.001, "{days}");
    assert_statuses(&space, &[(&token, 403)]);
}

#[test]
fn a_token_from_elsewhere_is_registered_once_and_not_printed() {
    let space = RedisSpace::new();
    let create =
        |token: &str, label: &str| keys(&space, &["create", "--label", label, "--token-stdin"]).stdin(token).run();
    let exited = create("from-elsewhere\r\n", "shop");
    assert_eq!((exited.code, &exited.stdout), (Some(0), &vec![]), "{exited:?}");
    assert_eq!(event(&exited)["message"], "API key registered");
    let id = event(&exited)["api_key"].clone();

    // The same token again changes nothing.
    let again = create("from-elsewhere", "shop");
    assert_eq!((again.code, &again.stdout, &event(&again)["api_key"]), (Some(0), &vec![], &id), "{again:?}");
    create("from-elsewhere", "other").assert_refused(1, &[id.as_str().expect("an id")]);
    assert_eq!(list(&space).len(), 1);
    assert_statuses(&space, &[("from-elsewhere", 200)]);
}

#[test]
fn a_rotated_key_keeps_its_id_and_both_tokens() {
    let space = RedisSpace::new();
    let (old, id) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
    let rotated = keys(&space, &["rotate", &id]).run();
    let (new, same) = token_and_id(&rotated);

    assert_eq!(same, id);
    assert_ne!(new, old);
    let entries = list(&space);
    assert!(entries.len() == 2 && entries[1]["expires"].is_null(), "{entries:?}");
    let [logged, listed] = [&event(&rotated)["old_token_ends"], &entries[0]["expires"]]
        .map(|time| humantime::parse_rfc3339(time.as_str().expect("a text")).expect("RFC 3339"));
    assert!(listed.duration_since(logged).unwrap_or_else(|error| error.duration()).as_secs() < 2, "{logged:?}");
    assert_statuses(&space, &[(&old, 200), (&new, 200)]);

    token_and_id(&keys(&space, &["rotate", &id, "--grace", "0s", "--expires-in", "1h"]).run());
    assert_eq!(list(&space).len(), 1);
}

#[test]
fn a_revoked_key_is_logged_and_nothing_is_left_in_redis() {
    let space = RedisSpace::new();
    let (_, id) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());

    let exited = keys(&space, &["revoke", &id]).run();
    assert_eq!((exited.code, &exited.stdout), (Some(0), &vec![]), "{exited:?}");
    let event = event(&exited);
    assert_eq!((&event["message"], &event["api_key"]), (&"API key revoked".into(), &id.as_str().into()));
    assert_eq!(event["api_key_label"], "shop");
    assert_eq!(space.names(), Vec::<String>::new());
}

#[test]
fn dates_after_the_year_9999_are_listed_as_its_end() {
    let space = RedisSpace::new();
    token_and_id(&keys(&space, &["create", "--label", "x"]).run());
    let names = space.names();
    let token = names.iter().find(|name| name.contains(":token:")).expect("its hash");
    let last = "18446744073709551615";
    space.command(&["HSET", token, "created", last, "expires", last]);

    let [entry] = &list(&space)[..] else { panic!("one token") };
    let last = Value::from("9999-12-31T23:59:59Z");
    assert_eq!((&entry["created"], &entry["expires"]), (&last, &last));
}

#[test]
fn control_characters_in_redis_are_not_printed() {
    for (field, value) in [("last4", "\u{1b}[2J"), ("label", "a\u{202e}b")] {
        let space = RedisSpace::new();
        let (_, id) = token_and_id(&keys(&space, &["create", "--label", "x"]).run());
        let names = space.names();
        let token = names.iter().find(|name| name.contains(":token:")).expect("its hash");
        space.command(&["HSET", token, field, value]);

        let exited = keys(&space, &["list"]).run();
        assert!(!exited.assert_refused(1, &[&id]).output().contains(value), "{exited:?}");
    }
}

#[test]
fn changes_are_logged_whatever_the_filter() {
    let space = RedisSpace::new();
    let exited = keys(&space, &["create", "--label", "shop"]).env("ANIMAL_STORE_LOG__FILTER", "off").run();

    assert_eq!(event(&exited)["message"], "API key created");
}
