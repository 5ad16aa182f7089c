//! `animal-store copy` and `animal-store backup`: what is copied, and what is refused. The rules are those of `app`.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::prelude::*;

/// API keys that are part of the configuration.
pub(crate) const MEMORY: &str = "backend = \"memory\"";
const FILE: &str = "backend = \"sqlite\"";
const DATABASE: &str = "backend = \"postgres\"";

/// Triggers that refuse each further pet, and their ends.
const IN_SQLITE: [&str; 2] = [
    "CREATE TRIGGER refuse BEFORE INSERT ON pets BEGIN SELECT RAISE(ABORT, 'refused'); END",
    "DROP TRIGGER refuse",
];
const IN_POSTGRES: [&str; 2] = [
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE 'refused' USING ERRCODE = '23514'; END$$;
    CREATE TRIGGER refuse BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION refuse()",
    "DROP TRIGGER refuse ON pets",
];

/// Copies between two stores, with these keys of the configuration files. The environment does not matter.
pub(crate) fn copy(from: (&Store, &str), to: (&Store, &str)) -> Program {
    Program::bare()
        .file("from.toml", &from.0.config(from.1))
        .file("to.toml", &to.0.config(to.1))
        .set("storage.backend", "memory")
        .args("copy --from from.toml --to to.toml")
}

/// Asserts that a store has these pages, that a create with the key `key-1` is a replay of this response, and that the
/// next pet has an id greater than `last`.
#[track_caller]
fn assert_has(store: &Store, expected: &[String], created: &str, last: i64) {
    let mut running = store.program().start();
    let address = running.address();
    assert_eq!(pages(address), expected);
    let replay = keyed_create_request(address, "key-1", "Rex").send();
    assert!(is_replay(&replay) && replay.text() == created, "{replay:?}");
    let next = create_request(address, "next").send().json();
    assert!(next["id"].as_i64() > Some(last), "{next}");
}

/// Asserts that an instance over a store accepts this token.
#[track_caller]
fn assert_accepted(store: &Store, token: &str) {
    let mut running = store.with_own_keys().start();
    assert_eq!(status(running.address(), token), 200);
}

#[test]
fn a_store_whose_copy_was_interrupted_says_so_until_the_copy_is_repeated() {
    let source = Store::sqlite();
    let empty = Store::sqlite();
    source.import(&odd_pets(3));
    empty.import(&[]);
    let event = "a copy into this store has not been completed: pets or API keys can be missing";
    for (target, subject, [refuse, accept]) in [
        (Store::sqlite(), "sqlite.copy", IN_SQLITE),
        (Store::postgres(), "postgres.copy", IN_POSTGRES),
    ] {
        let copy_from = |source| copy((source, MEMORY), (&target, MEMORY)).run();
        let assert_verdict = |verdict: &str| {
            let findings = target.run("doctor").stdout;
            let mut lines = findings.iter().filter(|line| line.contains(subject));
            assert!(lines.any(|line| line.starts_with(verdict)), "{findings:?}");
        };
        copy_from(&empty).assert_success();
        assert_verdict("ok ");
        target.execute(refuse);
        copy_from(&source).assert_code(1);
        assert_verdict("warning ");
        target.program().start().wait_for_event(event);

        target.execute(accept);
        copy_from(&source).assert_success();
        assert_verdict("ok ");
    }
}

#[test]
fn stores_that_cannot_be_copied_are_refused() {
    let store = Store::sqlite();
    let same = copy((&store, MEMORY), (&store, MEMORY)).run();
    same.assert_refused(2, &["same store"]);
    store.import(&odd_pets(1));
    let program = || {
        let program = Program::bare().file("memory.toml", "storage.backend = \"memory\"\n");
        program.file("store.toml", &store.config(MEMORY))
    };
    let in_memory = "storage.backend is memory";
    assert_all_refused(
        program,
        &[
            ("copy --from memory.toml --to store.toml", 2, in_memory),
            ("copy --from store.toml --to memory.toml", 2, in_memory),
            (
                "copy --from missing.db --to new.db",
                1,
                "missing.db: the file does not exist",
            ),
        ],
    );
    for name in [&b"caf\xe9.db"[..], b"pets.db "] {
        let copy = Program::bare().args("copy --from").arg(store.path());
        let refused = copy.arg("--to").arg(OsStr::from_bytes(name)).run();
        refused.assert_refused(2, &["is not UTF-8, or begins or ends with white space"]);
    }
}

#[test]
fn api_keys_move_to_redis_to_postgresql_and_back() {
    let [sqlite, postgres] = Store::each();
    let NewKey { token, id } = sqlite.create_key();
    let redis = RedisServer::start();
    let redis = format!("backend = \"redis\"\nredis.url = \"{}\"", redis.url());
    let to_redis = || copy((&sqlite, FILE), (&postgres, &redis)).run();
    let copied = to_redis();
    copied
        .assert_success()
        .assert_has("tokens of API keys: 1 added");
    let other = Store::postgres();
    let back = Store::sqlite();
    let copied = copy((&postgres, &redis), (&other, DATABASE)).run();
    copied.assert_success();
    assert_accepted(&other, &token);
    let copied = copy((&other, DATABASE), (&back, FILE)).run();
    copied.assert_success();
    assert_accepted(&back, &token);
    let [log, moved] = [&sqlite, &back].map(|store| store.keys("log --json").stdout);
    assert!(log.len() > 2 && moved == log, "{moved:?}");

    // A copy is repeated after a revocation in the target.
    other.keys(&format!("revoke {id}")).assert_code(0);
    let copied = copy((&postgres, &redis), (&other, DATABASE)).run();
    let again = format!("warning: API keys valid again: {id}; they had been revoked");
    copied.assert_success().assert_has(&again);
    assert_accepted(&other, &token);
    let copied = copy((&postgres, &redis), (&other, DATABASE)).run();
    assert!(
        !copied
            .assert_success()
            .stdout
            .concat()
            .contains("valid again"),
        "{copied:?}"
    );

    // A copy is repeated after a revocation in the source.
    sqlite.keys(&format!("revoke {id}")).assert_code(0);
    let copied = to_redis();
    let mut lines = copied.assert_success().stdout.iter();
    let alone = lines.find(|line| line.starts_with("API keys of the target alone"));
    // The target still accepts it.
    assert!(alone.is_some_and(|line| line.contains(&id)), "{copied:?}");
}

#[test]
fn a_backup_of_each_backend_starts_as_a_store_and_is_copied_back() {
    let [sqlite, postgres] = Store::each();
    for (from, program) in [
        (&sqlite, Store::with_own_keys as fn(&Store) -> Program),
        (&postgres, Store::program),
    ] {
        from.import(&odd_pets(1200));
        from.execute("DELETE FROM pets WHERE id % 5 = 2");
        let mut running = from.program().start();
        let created = keyed_create_request(running.address(), "key-1", "Rex").send();
        let created = created.assert_status(201).text();
        let last = create_request(running.address(), "last").send().json();
        let last = last["id"].as_i64().expect("an id");
        from.execute(&format!("DELETE FROM pets WHERE id = {last}"));
        let restored = Store::sqlite();
        let path = restored.path();
        let backup = || program(from).args("backup").arg(&path).run();
        // Beside a running service.
        let mut running = program(from).start();
        running.address();
        backup().assert_success();
        backup().assert_refused(1, &["exists"]);

        let to = Store::postgres();
        let pages = from.pages();
        let copy = Program::bare().file("to.toml", &to.config(MEMORY));
        let copied = copy.args("copy --to to.toml --from").arg(&path).run();
        copied.assert_error(0, &["this store is a backup"]);
        assert_eq!(copied.stdout[0], "pets: 961, 961 of them added");
        assert_has(&to, &pages, created, last);
        assert_has(&restored, &pages, created, last);
    }
}
