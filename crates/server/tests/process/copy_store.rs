//! `animal-store copy` and `animal-store backup`: what is copied, and what is refused. The rules are those of `app`.

use animal_store_test_servers::RedisSpace;
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{create_request, is_replay, keyed_create_request, pages, status},
    program::{Program, TOKEN},
    store::{Store, odd_pets},
};

/// API keys that are part of the configuration.
pub(crate) const MEMORY: &str = "backend = \"memory\"";
const FILE: &str = "backend = \"sqlite\"";
const DATABASE: &str = "backend = \"postgres\"";

/// Triggers that refuse each further pet.
const REFUSE_IN_SQLITE: &str =
    "CREATE TRIGGER refuse BEFORE INSERT ON pets BEGIN SELECT RAISE(ABORT, 'refused'); END";
const REFUSE_IN_POSTGRES: &str = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE 'refused' USING ERRCODE = '23514'; END$$;
    CREATE TRIGGER refuse BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION refuse()";

/// Copies between two stores, with these keys of the configuration files. The environment does not matter.
pub(crate) fn copy(from: (&Store, &str), to: (&Store, &str)) -> Program {
    let files = Program::bare()
        .file("from.toml", &from.0.config(from.1))
        .file("to.toml", &to.0.config(to.1));
    let args = ["copy", "--from", "from.toml", "--to", "to.toml"];
    files
        .env("ANIMAL_STORE_STORAGE__BACKEND", "memory")
        .args(&args)
}

/// Fills a store. Returns the response to a create with the key `key-1`.
#[track_caller]
fn fill(store: &Store) -> String {
    store.import(&odd_pets(1200).join("\n"));
    store.execute("DELETE FROM pets WHERE id % 5 = 2");
    let created =
        keyed_create_request(store.program().start().address(), TOKEN, "key-1", "Rex").send();
    created.assert_status(201).text().to_owned()
}

/// Asserts that a store has these pages, and that a create with the key `key-1` is a replay of this response.
#[track_caller]
fn assert_has(store: &Store, expected: &[String], created: &str) {
    let mut running = store.program().start();
    let address = running.address();
    assert_eq!(pages(address, TOKEN), expected);
    let replay = keyed_create_request(address, TOKEN, "key-1", "Rex").send();
    assert!(is_replay(&replay) && replay.text() == created, "{replay:?}");
}

#[test]
fn a_copy_there_and_back_has_the_same_pages_and_replays_the_same_keys() {
    let [sqlite, postgres] = Store::each();
    let created = fill(&sqlite);
    let pages = sqlite.pages();
    let back = Store::sqlite();
    for (from, to) in [(&sqlite, &postgres), (&postgres, &back)] {
        let copied = copy((from, MEMORY), (to, MEMORY)).run();
        assert_eq!(
            copied.assert_success().stdout[0],
            "pets: 961, 961 of them added"
        );
        assert_has(to, &pages, &created);
    }
    let id = create_request(back.program().start().address(), TOKEN, "next")
        .send()
        .json()["id"]
        .as_i64();
    assert!(id > Some(1201), "the next create has a greater id: {id:?}");
}

#[test]
fn a_store_whose_copy_was_interrupted_says_so_until_the_copy_is_repeated() {
    let (source, empty) = (Store::sqlite(), Store::sqlite());
    source.import(&odd_pets(3).join("\n"));
    empty.import("");
    let event = "a copy into this store has not been completed: pets or API keys can be missing";
    for (target, subject, file) in [
        (Store::sqlite(), "sqlite.copy", true),
        (Store::postgres(), "postgres.copy", false),
    ] {
        let verdict = || {
            let finding = target
                .run(&["doctor"])
                .stdout
                .into_iter()
                .find(|line| line.contains(subject));
            finding.and_then(|line| Some(line.split_once(' ')?.0.to_owned()))
        };
        copy((&empty, MEMORY), (&target, MEMORY))
            .run()
            .assert_success();
        assert_eq!(verdict().as_deref(), Some("ok"));
        target.execute(if file {
            REFUSE_IN_SQLITE
        } else {
            REFUSE_IN_POSTGRES
        });
        assert_eq!(
            copy((&source, MEMORY), (&target, MEMORY)).run().code,
            Some(1)
        );
        assert_eq!(verdict().as_deref(), Some("warning"));
        target.program().start().wait_for_event(event);

        target.execute(if file {
            "DROP TRIGGER refuse"
        } else {
            "DROP TRIGGER refuse ON pets"
        });
        copy((&source, MEMORY), (&target, MEMORY))
            .run()
            .assert_success();
        assert_eq!(verdict().as_deref(), Some("ok"));
    }
}

#[test]
fn stores_that_cannot_be_copied_are_refused() {
    let store = Store::sqlite();
    copy((&store, MEMORY), (&store, MEMORY))
        .run()
        .assert_refused(2, &["same store"]);
    let args = ["copy", "--from", "a.toml", "--to", "b.toml"];
    for args in [
        [&["--memory"], &args[..]].concat(),
        [&args[..], &["--set", "a=b"]].concat(),
    ] {
        Program::bare()
            .args(&args)
            .run()
            .assert_refused(2, &["no option selects the stores of copy"]);
    }
    store.import(&odd_pets(1)[0]);
    for files in [["memory.toml", "store.toml"], ["store.toml", "memory.toml"]] {
        let program = Program::bare()
            .file("memory.toml", "[storage]\nbackend = \"memory\"\n")
            .file("store.toml", &store.config(MEMORY));
        let copy = program.args(&["copy", "--from", files[0], "--to", files[1]]);
        copy.run().assert_refused(2, &["storage.backend is memory"]);
    }
    let missing = Program::bare()
        .args(&["copy", "--from", "missing.db", "--to", "new.db"])
        .run();
    missing.assert_refused(1, &["missing.db: the file does not exist"]);
}

#[test]
fn api_keys_move_to_redis_to_postgresql_and_back() {
    let [sqlite, postgres] = Store::each();
    let create = sqlite.with_own_keys().args(&[
        "keys", "create", "--create", "--label", "shop", "--scopes", "read",
    ]);
    let (token, id) = token_and_id(&create.run());
    let space = RedisSpace::new();
    let redis = format!(
        "backend = \"redis\"\nredis.url = \"{}\"\nredis.prefix = \"{}\"",
        space.url(),
        space.prefix()
    );
    let exited = copy((&sqlite, FILE), (&postgres, &redis)).run();
    assert!(
        exited
            .assert_success()
            .stdout
            .contains(&"tokens of API keys: 1 added".to_owned()),
        "{exited:?}"
    );
    let (other, back) = (Store::postgres(), Store::sqlite());
    copy((&postgres, &redis), (&other, DATABASE))
        .run()
        .assert_success();
    assert_eq!(status(other.with_own_keys().start().address(), &token), 200);
    copy((&other, DATABASE), (&back, FILE))
        .run()
        .assert_success();
    assert_eq!(status(back.with_own_keys().start().address(), &token), 200);
    let [log, moved] =
        [&sqlite, &back].map(|store| store.with_own_keys().args(&["keys", "log", "--json"]).run());
    assert!(
        log.assert_success().stdout.len() > 2 && moved.stdout == log.stdout,
        "{moved:?}"
    );

    // A copy is repeated after a revocation in the source.
    assert_eq!(
        sqlite
            .with_own_keys()
            .args(&["keys", "revoke", &id])
            .run()
            .code,
        Some(0)
    );
    let exited = copy((&sqlite, FILE), (&postgres, &redis)).run();
    let alone = exited
        .assert_success()
        .stdout
        .iter()
        .find(|line| line.starts_with("API keys of the target alone"));
    assert!(
        alone.is_some_and(|line| line.contains(&id)),
        "the target still accepts it: {exited:?}"
    );
}

#[test]
fn a_backup_of_each_backend_starts_as_a_store_and_is_copied_back() {
    let [sqlite, postgres] = Store::each();
    let create = sqlite
        .with_own_keys()
        .args(&["keys", "create", "--create", "--label", "shop"]);
    let (token, _) = token_and_id(&create.run());
    for (from, program) in [
        (&sqlite, Store::with_own_keys as fn(&Store) -> Program),
        (&postgres, Store::program),
    ] {
        let created = fill(from);
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("animal-store.db");
        let path = path.to_str().expect("UTF-8");
        // Beside a running service.
        let mut running = program(from).start();
        running.address();
        program(from).args(&["backup", path]).run().assert_success();
        program(from)
            .args(&["backup", path])
            .run()
            .assert_refused(1, &["exists"]);

        let (to, pages) = (Store::postgres(), from.pages());
        let copy = Program::bare()
            .file("to.toml", &to.config(MEMORY))
            .args(&["copy", "--from", path, "--to", "to.toml"]);
        let copied = copy.run();
        assert_eq!(copied.code, Some(0), "{copied:?}");
        assert!(
            matches!(&copied.stderr[..], [warning] if warning.contains("this store is a backup")),
            "{copied:?}"
        );
        assert_eq!(to.pages(), pages);
        let restored = Store::Sqlite(folder);
        assert_has(&restored, &pages, &created);
        if matches!(from, Store::Sqlite(_)) {
            assert_eq!(
                status(restored.with_own_keys().start().address(), &token),
                200
            );
        }
    }
}
