//! `animal-store keys`: output, exit code and effect of each command. The rules about keys are those of `app`.

use crate::{
    new_key::{audited, logged, text},
    prelude::*,
};

/// Program that runs `animal-store keys` with these arguments.
pub(crate) fn keys(redis: &RedisServer, line: &str) -> Program {
    Program::with_redis(&redis.url()).args("keys").args(line)
}

#[track_caller]
fn parse(list: &Exited) -> Vec<Value> {
    serde_json::from_str(&list.assert_success().stdout.join("\n")).expect("a JSON array")
}

#[test]
fn every_instance_follows_a_key_from_its_creation_to_its_revocation() {
    let store = Store::postgres();
    let program = || store.with_own_keys();
    let keys = |line: &str| program().args("keys").args(line);
    let list = || parse(&keys("list --json").run());
    let mut instances = [(), ()].map(|()| program().start());
    let addresses = instances.each_mut().map(|running| running.address());
    let wait_for = |token: &str, expected| {
        wait_until(|| addresses.map(|address| status(address, token)) == [expected; 2]);
    };

    // A change is logged whatever the filter.
    let create = keys("create --scopes read --expires-in 90d --label").arg("web shop");
    let created = create.set("log.filter", "off").run();
    let NewKey { token: old, id } = NewKey::printed(&created);
    assert_eq!(created.stderr.len(), 1, "{created:?}");
    let expected =
        json!({"message": "API key created", "api_key_label": "web shop", "scopes": "read"});
    assert_members(&audited(&created), &expected);
    let listed = list();
    let entry = only(&listed);
    assert!(entry["id"] == *id && entry["expires"].is_string());
    wait_for(&old, 200);

    let rotated = keys(&format!("rotate {id}")).run();
    let new = NewKey::printed(&rotated);
    assert!(new.id == id && new.token != old, "{rotated:?}");
    assert!(audited(&rotated)["old_token_ends"].is_string());
    assert_eq!(list().len(), 2);
    wait_for(&new.token, 200);
    wait_for(&old, 200);

    let log = parse(&keys("log --json").run());
    assert_eq!(log.len(), 2);
    for (entry, change) in log.iter().zip(["create", "rotate"]) {
        assert_members(entry, &json!({"change": change, "id": id}));
        assert!(text(entry, "by").contains('@'), "{entry}");
    }
    let table = keys("log").run().stdout;
    let columns = "AT BY CHANGE ID LABEL SCOPES EXPIRES OLD TOKEN ENDS";
    let words: Vec<_> = table[0].split_whitespace().collect();
    assert_eq!((words.join(" "), table.len()), (columns.to_owned(), 3));

    let revoked = keys(&format!("revoke {id}")).succeed();
    assert!(revoked.stdout.is_empty(), "{revoked:?}");
    let expected = json!({"message": "API key revoked", "api_key": id});
    assert_members(&audited(&revoked), &expected);
    wait_for(&new.token, 401);
}

#[test]
fn a_token_from_elsewhere_is_registered_once_and_not_printed() {
    let store = Store::sqlite();
    let register = |token: &str, label: &str| {
        let keys = store.with_own_keys().args("keys create --create");
        let create = keys.args("--token-stdin --label").arg(label);
        create.stdin(token).run()
    };
    let registered = register("from-elsewhere\r\n", "shop");
    registered.assert_code(0).assert_has("can be guessed");
    assert!(registered.stdout.is_empty(), "{registered:?}");
    let event = audited(&registered);
    assert_eq!(event["message"], "API key registered");
    let id = text(&event, "api_key");
    for same in ["from-elsewhere", "\u{feff}from-elsewhere\n"] {
        assert_eq!(audited(&register(same, "shop"))["api_key"], id);
    }
    for (input, label, reason) in [
        ("from-elsewhere", "other", &*id),
        ("secret-1\nsecret-2", "x", "does not contain a valid token"),
        ("animalstore_x", "x", "checksum"),
    ] {
        let refused = register(input, label);
        refused.assert_refused(1, &[reason]).assert_lacks(input);
    }
    assert_eq!(parse(&store.keys("list --json")).len(), 1);
}

#[test]
fn a_key_is_added_to_a_missing_file_only_with_create() {
    let store = Store::sqlite();
    for line in ["list", "revoke a", "rotate a", "create --label shop"] {
        let reason = "animal-store.db: the file does not exist";
        let advice = "add --create to keys create";
        store.keys(line).assert_refused(1, &[reason, advice]);
        let files = fs::read_dir(store.folder()).expect("a folder");
        assert_eq!(files.count(), 0, "{line}");
    }
    store.create_key();
    store.keys("list").assert_success().assert_has("shop");
}

#[test]
fn the_last_uses_of_a_key_are_listed_if_they_can_be_read() {
    let server = RedisServer::start();
    let program = || Program::with_redis(&server.url());
    let keys = |line: &str| program().args("keys").args(line).succeed();
    let token = NewKey::printed(&keys("create --label x --scopes write")).token;

    // A refused use of `getPet` counts as well, and is written by the end of the process.
    let mut running = program().start();
    let client = HttpClient::new(running.address()).with_token(&token);
    // On a busy machine, the short timeout of Redis can pass.
    wait_until(|| client.get("/v1/pets/1").status == 403);
    running.terminate().assert_success();

    let listed = keys("list --json");
    listed.assert_has("earlier uses of API keys are unknown");
    listed.assert_has(r#""last_used": "20"#);
    listed.assert_has(r#""last_used_get_pet": "20"#);
    server.run("ACL SETUSER default -zrange");
    let listed = keys("list");
    listed.assert_has("the uses of the API keys cannot be read");
    assert_eq!(listed.stdout.len(), 2, "{listed:?}");
}

#[test]
fn a_command_that_cannot_be_executed_is_refused() {
    let store = Store::sqlite();
    let key = store.create_key();
    let before = store.list_keys();
    let rotate = format!("rotate {}", key.token);
    let negative = format!("rotate {} --grace -1h", key.id);
    assert_all_refused(
        || store.with_own_keys().args("keys"),
        &[
            ("revoke unknown", 1, "no API key has this id"),
            ("rotate a/b", 1, "1 to 64"),
            (&rotate, 1, "a token, not an id"),
            ("create --label a\u{200b}b", 2, "a label has 1 to 64"),
            ("create --label x --scopes admin", 2, "read or write"),
            ("create --label x --expires-in 0s", 2, "from 1s to 100years"),
            (&negative, 2, "-1"),
        ],
    );
    store.keys(&rotate).assert_lacks(&key.token);
    assert_eq!(store.list_keys(), before);
    let memory = Program::with_key().args("keys list").run();
    memory.assert_refused(2, &["keys.backend is memory"]);
}

#[test]
fn a_revocation_that_cannot_be_recorded_is_done_and_an_error_in_the_log() {
    let store = Store::sqlite();
    let id = store.create_key().id;
    store.execute("ALTER TABLE api_key_changes RENAME TO other");
    let revoked = store.keys(&format!("revoke {id}"));
    let event = logged(&revoked, "message", "the revocation is not recorded");
    assert_members(&event, &json!({"level": "ERROR", "api_key": id}));
    revoked.assert_code(0);
}

/// The token of the new key is printed: it could not be used otherwise.
#[test]
fn a_change_that_no_replica_confirms_is_kept_and_is_not_a_success() {
    let redis = RedisServer::start();
    let create = keys(&redis, "create --label new").set("keys.redis.wait_replicas", "1");
    let created = create.run();
    let last = created.assert_code(1).stderr.last().expect("a line");
    assert!(last.contains("the change is kept, but a fail-over can lose it"));
    assert_eq!(created.stdout.len(), 1, "{created:?}");
    let listed = parse(&keys(&redis, "list --json").run());
    assert_eq!(listed[0]["id"], audited(&created)["api_key"]);
}

/// Rust opens `/dev/null` in place of a closed output, and ignores writes to one that is open for reading only.
#[test]
fn a_token_that_cannot_be_shown_is_not_made_and_an_output_that_cannot_be_written_is_not_a_success()
{
    let store = Store::sqlite();
    let id = store.create_key().id;
    let before = store.list_keys();
    let keys = |line: &str, output: &str| {
        let program = store.with_own_keys().args("keys").args(line);
        program.run_by_shell(&format!(r#"exec "$@" {output}"#))
    };
    for output in [">&-", ">/dev/null", "1</dev/zero"] {
        for line in ["create --label y", &format!("rotate {id}")] {
            let reason = "standard output is closed or discarded";
            let refused = keys(line, output).run();
            refused.assert_refused(1, &[reason, "nothing was changed"]);
        }
        let revoked = keys("revoke unknown", output).run();
        revoked.assert_refused(1, &["no API key has this id"]);
    }
    assert_eq!(store.list_keys(), before);
    // It prints no token.
    let register = keys("create --label y --token-stdin", ">/dev/null");
    let registered = register.stdin("0123456789012345678901").run();
    registered.assert_code(0).assert_lacks("WARN");

    let unprinted = keys("create --label x", ">/dev/full").run();
    unprinted.assert_refused(1, &["could not be printed"]);
}

#[test]
fn each_change_names_its_store_and_equal_labels_and_a_rotation_the_end_of_the_old_token() {
    let store = Store::sqlite();
    let own = format!("sqlite {}", store.path());
    let created = store.keys("create --create --label shop");
    let id = NewKey::printed(&created).id;
    let again = store.keys("create --label shop");
    let rotated = store.keys(&format!("rotate {id}"));
    let rotated_at_once = store.keys(&format!("rotate {id} --grace 0s"));
    let revoked = store.keys(&format!("revoke {id}"));

    let equal = "other API keys have the same label";
    created.assert_lacks(equal);
    let warning = logged(&again, "message", equal);
    assert_members(&warning, &json!({"api_key_label": "shop", "api_keys": id}));
    let end = text(&audited(&rotated), "old_token_ends");
    let mut lines = rotated.stderr.iter();
    let hint = lines.find(|line| line.contains("--grace 0s"));
    assert!(hint.is_some_and(|hint| hint.contains(&end) && hint.contains(&id)));
    rotated_at_once.assert_lacks("is accepted until");
    let help = store.keys("rotate --help");
    help.assert_has("--grace 0s").assert_has("24 hours");
    for exited in [created, again, rotated, rotated_at_once, revoked] {
        assert_eq!(audited(&exited)["store"], own);
    }
    for refused in ["revoke unknown", "rotate unknown"] {
        let reason = format!("{own}: no API key has this id");
        store.keys(refused).assert_refused(1, &[&reason]);
    }
}
