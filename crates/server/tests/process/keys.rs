//! `animal-store keys`: output, exit code and effect of each command. The rules about keys are those of `app`.

use std::{fs, path::Path};

use animal_store_test_servers::{HttpClient, RedisServer, RedisSpace, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    pets::status,
    program::{Exited, Program, Running},
    store::Store,
};

/// Program that runs `animal-store keys` with these arguments.
pub(crate) fn keys(space: &RedisSpace, args: &[&str]) -> Program {
    Program::with_redis(space).args(&["keys"]).args(args)
}

/// Returns the printed token and the logged id.
#[track_caller]
pub(crate) fn token_and_id(exited: &Exited) -> (String, String) {
    assert_eq!(exited.code, Some(0), "{exited:?}");
    let [token] = &exited.stdout[..] else {
        panic!("a token and nothing else: {exited:?}")
    };
    (
        token.clone(),
        event(exited)["api_key"].as_str().expect("an id").to_owned(),
    )
}

/// Returns the event of the audit log.
#[track_caller]
fn event(exited: &Exited) -> Value {
    logged(exited, "target", "audit")
}

/// Returns the event of the log whose member has this value.
#[track_caller]
fn logged(exited: &Exited, member: &str, value: &str) -> Value {
    let lines = exited.stderr.iter();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let event = events.find(|event| event[member] == value);
    event.unwrap_or_else(|| panic!("no event {value}: {exited:?}"))
}

#[track_caller]
fn parse(list: &Exited) -> Vec<Value> {
    serde_json::from_str(&list.assert_success().stdout.join("\n")).expect("a JSON array")
}

#[track_caller]
fn list(space: &RedisSpace) -> Vec<Value> {
    parse(&keys(space, &["list", "--json"]).run())
}

#[test]
fn every_instance_follows_a_key_from_its_creation_to_its_revocation() {
    let (space, postgres) = (RedisSpace::new(), Store::postgres());
    follow(|| Program::with_redis(&space));
    follow(|| postgres.with_own_keys());
}

fn follow(program: impl Fn() -> Program) {
    let keys = |args: &[&str]| program().args(&["keys"]).args(args);
    let list = || parse(&keys(&["list", "--json"]).run());
    let mut instances = [(), ()].map(|()| program().start());
    let addresses = instances.each_mut().map(|running| running.address());
    let wait_for = |token: &str, expected| {
        wait_until(|| {
            addresses
                .iter()
                .all(|address| status(*address, token) == expected)
        });
    };

    // A change is logged whatever the filter.
    let args = [
        "create",
        "--label",
        "web shop",
        "--scopes",
        "read",
        "--expires-in",
        "90d",
    ];
    let created = keys(&args).env("ANIMAL_STORE_LOG__FILTER", "off").run();
    let (old, id) = token_and_id(&created);
    assert_eq!(
        (
            &*event(&created)["message"].to_string(),
            created.stderr.len()
        ),
        ("\"API key created\"", 1)
    );
    assert_eq!(
        (
            &event(&created)["api_key_label"],
            &event(&created)["scopes"]
        ),
        (&"web shop".into(), &"read".into())
    );
    let [entry] = &list()[..] else {
        panic!("one token")
    };
    assert!(
        entry["id"] == *id && entry["expires"].is_string(),
        "{entry}"
    );
    wait_for(&old, 200);

    let rotated = keys(&["rotate", &id]).run();
    let (new, same) = token_and_id(&rotated);
    assert!(
        same == id && new != old && event(&rotated)["old_token_ends"].is_string(),
        "{rotated:?}"
    );
    assert_eq!(list().len(), 2);
    wait_for(&new, 200);
    wait_for(&old, 200);
    let (newest, _) =
        token_and_id(&keys(&["rotate", &id, "--grace", "0s", "--expires-in", "1h"]).run());
    assert_eq!(list().len(), 1);
    wait_for(&new, 401);
    wait_for(&newest, 200);
    let log = parse(&keys(&["log", "--json"]).run());
    let changes: Vec<_> = log
        .iter()
        .map(|entry| (entry["change"].as_str(), entry["id"].as_str()))
        .collect();
    assert_eq!(
        changes,
        ["create", "rotate", "rotate"].map(|change| (Some(change), Some(&*id)))
    );
    assert!(
        log.iter()
            .all(|entry| entry["by"].as_str().is_some_and(|by| by.contains('@'))),
        "{log:?}"
    );
    let table = keys(&["log"]).run();
    let columns = [
        "AT", "BY", "CHANGE", "ID", "LABEL", "SCOPES", "EXPIRES", "OLD", "TOKEN", "ENDS",
    ];
    assert!(
        table.stdout.len() == 4 && table.stdout[0].split_whitespace().eq(columns),
        "{table:?}"
    );

    let revoked = keys(&["revoke", &id]).run();
    assert_eq!(
        (revoked.code, &revoked.stdout),
        (Some(0), &vec![]),
        "{revoked:?}"
    );
    let event = event(&revoked);
    assert_eq!(
        (&event["message"], &event["api_key"]),
        (&"API key revoked".into(), &id.into())
    );
    wait_for(&newest, 401);
}

#[test]
fn a_token_from_elsewhere_is_registered_once_and_not_printed() {
    let space = RedisSpace::new();
    let register = |token: &str, label: &str| {
        let args = ["create", "--label", label, "--token-stdin"];
        keys(&space, &args).stdin(token).run()
    };
    let registered = register("from-elsewhere\r\n", "shop");
    assert_eq!(registered.code, Some(0), "{registered:?}");
    assert!(registered.stdout.is_empty(), "{registered:?}");
    assert_eq!(event(&registered)["message"], "API key registered");
    assert!(
        registered.output().contains("can be guessed"),
        "it is short"
    );
    let id = &event(&registered)["api_key"];
    assert_eq!(event(&register("from-elsewhere", "shop"))["api_key"], *id);
    register("from-elsewhere", "other").assert_refused(1, &[id.as_str().expect("an id")]);
    let mut running = Program::with_redis(&space).start();
    assert_eq!(status(running.address(), "from-elsewhere"), 200);

    for (input, reason) in [
        ("secret-1\nsecret-2", "does not contain a valid token"),
        ("animalstore_x", "checksum"),
    ] {
        let refused = register(input, "x");
        refused.assert_refused(1, &[reason]);
        assert!(!refused.output().contains(input), "{input}");
    }
    assert_eq!(list(&space).len(), 1);
}

#[test]
fn a_label_that_other_keys_have_is_a_warning_with_their_ids() {
    let space = RedisSpace::new();
    let create = || keys(&space, &["create", "--label", "shop"]).run();
    let first = create();
    let second = create();
    let message = "other API keys have the same label";
    assert!(!first.output().contains(message), "{first:?}");
    let warning = logged(&second, "message", message);
    assert_eq!(warning["api_key_label"], "shop");
    assert_eq!(warning["api_keys"], token_and_id(&first).1);
}

#[test]
fn a_key_is_added_to_a_missing_file_only_with_create() {
    let folder = TempDir::new().unwrap();
    let keys = |args: &[&str]| {
        Program::in_folder(folder.path())
            .args(&["keys"])
            .args(args)
            .run()
    };
    for args in [
        &["list"][..],
        &["revoke", "a"],
        &["rotate", "a"],
        &["create", "--label", "shop"],
    ] {
        keys(args).assert_refused(
            1,
            &[
                "animal-store.db: the file does not exist",
                "add --create to keys create",
            ],
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    token_and_id(&keys(&["create", "--create", "--label", "shop"]));
    assert!(keys(&["list"]).assert_success().stdout[1].contains("shop"));
}

#[test]
fn the_last_uses_of_each_key_are_listed() {
    let server = RedisServer::start();
    let program = || Program::with_redis_url(&server.url());
    let keys = |args: &[&str]| program().args(&["keys"]).args(args).run();
    let create = || token_and_id(&keys(&["create", "--label", "x", "--scopes", "write"]));
    let (token, used) = create();
    let (_, unused) = create();

    // A refused use of `getPet` counts as well, and is written by the end of the process.
    let mut running = program().start();
    let client = HttpClient::new(running.address()).with_token(&token);
    client.get("/v1/pets/1").assert_status(403);
    running.terminate().assert_success();

    let exited = keys(&["list", "--json"]);
    assert!(
        exited
            .output()
            .contains("earlier uses of API keys are unknown"),
        "{exited:?}"
    );
    let entries: Vec<Value> = serde_json::from_str(&exited.stdout.join("\n")).expect("JSON");
    for entry in entries {
        for member in ["last_used", "last_used_get_pet"] {
            assert_eq!(entry[member].is_string(), entry["id"] == used, "{entry}");
            assert_eq!(entry[member].is_null(), entry["id"] == unused, "{entry}");
        }
    }
    server.command(&["ACL", "SETUSER", "default", "-zrange"]);
    let exited = keys(&["list"]);
    let lines = exited.stdout.len();
    assert_eq!((exited.code, lines), (Some(0), 3), "{exited:?}");
    let message = "the uses of the API keys cannot be read";
    assert!(exited.output().contains(message), "{exited:?}");
}

#[test]
fn a_command_that_cannot_be_executed_is_refused() {
    let space = RedisSpace::new();
    let (token, id) = token_and_id(&keys(&space, &["create", "--label", "x"]).run());
    for (args, code, reason) in [
        (
            &["revoke", "unknown"][..],
            1,
            "no API key has the id unknown",
        ),
        (&["rotate", "a b"], 1, "1 to 64"),
        (&["rotate", &token], 1, "the argument is a token, not an id"),
        (&["create"], 2, "--label"),
        (&["create", "--label", " "], 2, "not only white space"),
        (
            &["create", "--label", "a\u{200b}b"],
            2,
            "a label has 1 to 64 characters",
        ),
        (
            &["create", "--label", "x", "--scopes", "admin"],
            2,
            "read or write",
        ),
        (
            &["create", "--label", "x", "--expires-in", "0s"],
            2,
            "a duration from 1s to 100years",
        ),
        (&["rotate", &id, "--grace", "-1h"], 2, "-1"),
        (&[], 2, "create"),
    ] {
        assert!(
            !keys(&space, args)
                .run()
                .assert_refused(code, &[reason])
                .output()
                .contains(&token),
            "{args:?}"
        );
    }
    assert_eq!(list(&space).len(), 1);
    Program::with_key()
        .args(&["keys", "list"])
        .run()
        .assert_refused(1, &["keys.backend is memory"]);

    let server = RedisServer::with(&["--requirepass", "right"]);
    let url = format!("redis://:top-secret@localhost:{}", server.port());
    let exited = Program::with_redis_url(&url).args(&["keys", "list"]).run();
    assert!(
        !exited
            .assert_refused(1, &["WRONGPASS"])
            .output()
            .contains("top-secret"),
        "{exited:?}"
    );
}

/// The token of the new key is printed: it could not be used otherwise.
#[test]
fn a_change_that_no_replica_confirms_is_kept_and_is_not_a_success() {
    let space = RedisSpace::new();
    let (_, id) = token_and_id(&keys(&space, &["create", "--label", "old"]).run());
    let replicated = |args: &[&str]| {
        keys(&space, args)
            .env("ANIMAL_STORE_KEYS__REDIS__WAIT_REPLICAS", "1")
            .start()
    };
    let running = [
        replicated(&["create", "--label", "new"]),
        replicated(&["revoke", &id]),
    ];
    let [created, revoked] = running.map(Running::wait);
    for exited in [&created, &revoked] {
        let reason = "the change is kept, but a fail-over can lose it";
        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert!(
            exited
                .stderr
                .last()
                .is_some_and(|line| line.contains(reason)),
            "{exited:?}"
        );
    }
    assert_eq!(event(&revoked)["message"], "API key revoked");
    let [entry] = &list(&space)[..] else {
        panic!("one token")
    };
    assert_eq!(
        (&entry["id"], created.stdout.len()),
        (&event(&created)["api_key"], 1)
    );
}

/// The user of the service may not change keys.
#[test]
fn a_url_of_its_own_is_used_for_the_administration() {
    let server = RedisServer::start();
    server.command(&[
        "ACL",
        "SETUSER",
        "reader",
        "on",
        ">secret",
        "%R~*",
        "+client|tracking",
        "+exists",
        "+hmget",
    ]);
    server.command(&["ACL", "SETUSER", "reader", "+pttl"]);
    let url = format!("redis://reader:secret@localhost:{}", server.port());
    let program =
        || Program::with_redis_url(&url).env("ANIMAL_STORE_KEYS__REDIS__ADMIN_URL", &server.url());
    Program::with_redis_url(&url)
        .args(&["keys", "create", "--label", "x"])
        .run()
        .assert_refused(1, &["NOPERM"]);
    let (token, _) = token_and_id(&program().args(&["keys", "create", "--label", "x"]).run());
    assert_eq!(status(program().start().address(), &token), 200);
    let found = program().args(&["doctor", "--json"]).run();
    assert!(
        found
            .stdout
            .iter()
            .any(|line| line.contains("API keys can be changed")),
        "{found:?}"
    );
}

#[test]
fn a_result_or_an_event_that_cannot_be_written_is_not_a_success() {
    let space = RedisSpace::new();
    let create = |script| {
        keys(&space, &["create", "--label", "x"])
            .run_by_shell(script)
            .run()
    };
    create(r#"exec "$@" >/dev/full"#).assert_refused(1, &["could not be printed"]);
    let exited = create(r#"exec "$@" 2>/dev/full"#);
    assert!(
        exited.code == Some(1) && exited.stdout[0].starts_with("animalstore_"),
        "{exited:?}"
    );
}

/// Rust opens `/dev/null` in place of a closed output, and ignores writes to one that is open for reading only.
#[test]
fn a_token_that_cannot_be_shown_is_not_made() {
    let folder = TempDir::new().expect("a folder");
    let run = |args: &[&str], script: &str| {
        Program::in_folder(folder.path())
            .args(args)
            .run_by_shell(script)
            .run()
    };
    let created = run(
        &["keys", "create", "--create", "--label", "x"],
        r#"exec "$@""#,
    );
    let before = list_in(folder.path());
    let (_, id) = token_and_id(&created);
    for output in [">&-", ">/dev/null", "1</dev/zero"] {
        let script = format!(r#"exec "$@" {output}"#);
        for args in [
            &["keys", "create", "--label", "y"][..],
            &["keys", "rotate", &id],
        ] {
            run(args, &script).assert_refused(
                1,
                &[
                    "standard output is closed or discarded",
                    "nothing was changed",
                ],
            );
        }
        let revoked = ["keys", "revoke", "unknown"];
        run(&revoked, &script).assert_refused(1, &["no API key has the id unknown"]);
    }
    assert_eq!(list_in(folder.path()), before);
    let registered = Program::in_folder(folder.path())
        .args(&["keys", "create", "--label", "y", "--token-stdin"])
        .run_by_shell(r#"exec "$@" >/dev/null"#)
        .stdin("0123456789012345678901")
        .run();
    assert_eq!(
        registered.code,
        Some(0),
        "it prints no token: {registered:?}"
    );
    assert!(!registered.output().contains("WARN"), "{registered:?}");
}

#[test]
fn each_change_says_which_store_it_has_changed() {
    let folder = TempDir::new().expect("a folder");
    let file = format!("sqlite {}/animal-store.db", folder.path().display());
    let run = |args: &[&str]| Program::in_folder(folder.path()).args(args).run();
    let created = run(&["keys", "create", "--create", "--label", "x"]);
    let (_, id) = token_and_id(&created);
    let rotated = run(&["keys", "rotate", &id]);
    let revoked = run(&["keys", "revoke", &id]);
    for exited in [created, rotated, revoked] {
        assert_eq!(changed_store(&exited), file);
    }
    let space = RedisSpace::new();
    let store = changed_store(&keys(&space, &["create", "--label", "x"]).run());
    assert!(
        store.starts_with("redis localhost:") || store.starts_with("redis 127.0.0.1:"),
        "{store}"
    );
}

/// Returns the store that a command says to have changed.
#[track_caller]
fn changed_store(exited: &Exited) -> String {
    let event = logged(exited, "message", "this store was changed");
    event["store"].as_str().expect("a text").to_owned()
}

#[test]
fn a_rotation_says_when_the_old_token_ends_and_how_to_end_it_now() {
    let folder = TempDir::new().expect("a folder");
    let run = |args: &[&str]| Program::in_folder(folder.path()).args(args).run();
    let (_, id) = token_and_id(&run(&["keys", "create", "--create", "--label", "x"]));
    let rotated = run(&["keys", "rotate", &id]);
    let end = event(&rotated)["old_token_ends"]
        .as_str()
        .expect("a time")
        .to_owned();
    let hint = rotated
        .stderr
        .iter()
        .find(|line| line.contains("--grace 0s"))
        .expect("a hint");
    assert!(hint.contains(&end) && hint.contains(&id), "{rotated:?}");
    let at_once = run(&["keys", "rotate", &id, "--grace", "0s"]);
    assert!(
        !at_once.output().contains("is accepted until"),
        "{at_once:?}"
    );
    let help = run(&["keys", "rotate", "--help"]).stdout.join(" ");
    assert!(
        help.contains("--grace 0s") && help.contains("24 hours"),
        "{help}"
    );
}

/// Returns the standard output of `keys list` of the file in this folder.
pub(crate) fn list_in(folder: &Path) -> String {
    let exited = Program::in_folder(folder)
        .args(&["keys", "list", "--json"])
        .run();
    exited.assert_success().stdout.join("\n")
}
